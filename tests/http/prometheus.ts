export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*/;
const VALUE = /^(?:\+Inf|-Inf|NaN|-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)$/;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [""],
  gauge: [""],
  histogram: ["_bucket", "_sum", "_count"],
};

/** Reads text in the format of Prometheus, version 0.0.4, and throws at whatever is not as the format has it. */
export function parsePrometheus(text: string): Family[] {
  if (!text.endsWith("\n")) throw new Error("Expected the last line to end.");
  const families: (Omit<Family, "samples"> & { samples: Sample[] })[] = [];
  const seen = new Set<string>();
  const lines = text.slice(0, -1).split("\n");
  for (let at = 0; at < lines.length; ) {
    const [, name, help] = match(/^# HELP (\S+) (.+)$/, lines[at++]);
    const [, typed, type] = match(/^# TYPE (\S+) (counter|gauge|histogram)$/, lines[at++]);
    if (typed !== name || !isWhole(NAME, name)) throw new Error(`Expected the type of ${name}, got that of ${typed}.`);
    if (families.some((family) => family.name === name)) throw new Error(`Expected ${name} once.`);
    const family = { name, type, help, samples: [] as Sample[] };
    families.push(family);
    for (; at < lines.length && !lines[at]?.startsWith("#"); at++) {
      const sample = parseSample(lines[at] as string);
      const suffix = sample.name.startsWith(name) ? sample.name.slice(name.length) : undefined;
      if (suffix === undefined || !SUFFIXES[type]?.includes(suffix))
        throw new Error(`${sample.name} is not of ${name}.`);
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      if (seen.has(series)) throw new Error(`Expected the series ${series} once.`);
      seen.add(series);
      family.samples.push(sample);
    }
    if (type === "histogram") checkHistogram(family);
  }
  return families;
}

function parseSample(line: string): Sample {
  const name = NAME.exec(line)?.[0];
  if (name === undefined) throw new Error(`Expected a name, got ${line}.`);
  let rest = line.slice(name.length);
  const labels: Record<string, string> = {};
  if (rest.startsWith("{")) {
    rest = rest.slice(1);
    for (let isFirst = true; !rest.startsWith("}"); isFirst = false) {
      if (!isFirst) rest = take(rest, ",");
      const label = LABEL.exec(rest)?.[0];
      if (label === undefined || Object.hasOwn(labels, label)) throw new Error(`Expected a new label, got ${rest}.`);
      rest = take(rest.slice(label.length), '="');
      const [value, after] = parseText(rest);
      labels[label] = value;
      rest = after;
    }
    rest = rest.slice(1);
  }
  const value = take(rest, " ");
  if (!VALUE.test(value)) throw new Error(`Expected a value, got ${JSON.stringify(value)}.`);
  return { name, labels, value: Number(value.replace("Inf", "Infinity")) };
}

/** Reads up to the closing quotation mark. */
function parseText(text: string): [value: string, rest: string] {
  let value = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string;
    if (char === '"') return [value, text.slice(at + 1)];
    if (char !== "\\") {
      value += char;
      continue;
    }
    const meant = ({ "\\": "\\", '"': '"', n: "\n" } as Record<string, string>)[text[++at] ?? ""];
    if (meant === undefined) throw new Error(`Expected an escape, got ${text.slice(at - 1)}.`);
    value += meant;
  }
  throw new Error(`Expected a closing quotation mark in ${text}.`);
}

/** Buckets ascend and hold all below them; the last is without end and holds all. */
function checkHistogram({ name, samples }: Family): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const counts = buckets.map(({ value }) => value);
  const bounds = buckets.map(({ labels }) => Number((labels["le"] as string).replace("Inf", "Infinity")));
  const isAscending = (list: number[], least: number) =>
    list.every((one, at) => at === 0 || one - Number(list[at - 1]) >= least);
  if (!isAscending(bounds.slice(0, -1), Number.MIN_VALUE)) throw new Error(`The bounds of ${name} do not ascend.`);
  if (bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`The last bucket of ${name} has an end.`);
  if (!isAscending(counts, 0)) throw new Error(`The buckets of ${name} do not add up.`);
  const [sum, count] = ["_sum", "_count"].map((suffix) => samples.filter((one) => one.name === `${name}${suffix}`));
  if (sum?.length !== 1 || count?.length !== 1) throw new Error(`Expected one sum and one count of ${name}.`);
  if (count[0]?.value !== counts.at(-1)) throw new Error(`The count of ${name} is not that of its last bucket.`);
}

function match(pattern: RegExp, line: string | undefined): [string, string, string] {
  const found = pattern.exec(line ?? "");
  if (found === null) throw new Error(`Expected ${pattern}, got ${line}.`);
  return [found[0], found[1] as string, found[2] as string];
}

function isWhole(pattern: RegExp, text: string): boolean {
  return pattern.exec(text)?.[0] === text;
}

function take(text: string, start: string): string {
  if (!text.startsWith(start)) throw new Error(`Expected ${start} before ${text}.`);
  return text.slice(start.length);
}
