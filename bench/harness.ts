import { describeMachine, type Machine } from "./machine.js";
import { type Answer, openSeat, type Question, type Seat, serve } from "./seat.js";
import { median, quantile } from "./stats.js";
import { table } from "./table.js";

// Every contender runs in a process of its own, and the rounds go round the processes: A B C, B C A, C A B …
//
// A process each, so that no contender runs on another's heap or with call sites that have seen another's classes. (For
// the block pools it makes no difference that could be measured; this way the question does not arise for the next.)
// Interleaved, because the machine's speed drifts over seconds, with its neighbours, its clock and its caches, and a
// drift must meet everybody alike: on a busy machine the same round takes three times as long a minute later. Ratios are
// medians over rounds of the time by the first contender's time in the same round.

/** One contender, set up and warm. */
export interface Runner {
  /** Operations of one round. */
  readonly operations: number;
  /** Runs one round and returns a checksum of what it did, at once or later. It is the part that is timed. */
  run(): number | Promise<number>;
  /** Returns a checksum of the state after a round. Not timed. */
  digest(): number;
  /** Returns a checksum of all that can be seen of the state, after the last round. May destroy it. */
  finish(): number;
}

/** Something that is measured in rounds. The first contender is the one that the others are compared with. */
export interface TimedSuite {
  readonly kind: "time";
  readonly title: string;
  /** What one operation is. */
  readonly operation: string;
  readonly rounds: number;
  readonly contenders: Readonly<Record<string, () => Promise<Runner>>>;
}

/** Something that is measured once for each column. */
export interface SizeSuite {
  readonly kind: "size";
  readonly title: string;
  readonly columns: readonly string[];
  /** Returns bytes; each call happens in a fresh process with `globalThis.gc`. */
  readonly contenders: Readonly<Record<string, (column: number) => Promise<number>>>;
}

export type Suite = TimedSuite | SizeSuite;

interface TimedRow {
  readonly contender: string;
  readonly medianUs: number;
  readonly p10Us: number;
  readonly p90Us: number;
  /** Median over rounds of this contender's time by the first contender's in the same round. */
  readonly ratio: number;
}
interface SizeRow {
  readonly contender: string;
  readonly bytes: readonly number[];
}
type Result =
  | { readonly title: string; readonly operation: string; readonly rounds: number; readonly rows: TimedRow[] }
  | { readonly title: string; readonly columns: readonly string[]; readonly rows: SizeRow[] };

/**
 * Runs suites and prints them as Markdown. The entry file calls it with its own URL.
 *
 * Arguments of the entry: `--json` prints JSON instead; any other word runs only the suites that have it in their title.
 */
export async function main(entry: string, suites: readonly Suite[]): Promise<void> {
  if (await serve(suites)) return;
  const machine = describeMachine();
  const json = process.argv.includes("--json");
  const only = process.argv.slice(2).find((argument) => !argument.startsWith("-"));
  if (!json) console.log(`${heading(machine)}\n`);
  const results: Result[] = [];
  for (const [index, suite] of suites.entries()) {
    if (only !== undefined && !suite.title.includes(only)) continue;
    const result = suite.kind === "time" ? await time(entry, suite, index) : await size(entry, suite, index);
    results.push(result);
    if (!json) console.log(`${markdown(result)}\n`);
  }
  if (json) console.log(JSON.stringify({ machine, results }, null, 2));
}

async function time(entry: string, suite: TimedSuite, index: number): Promise<Result> {
  const names = Object.keys(suite.contenders);
  const seats = names.map((name) => openSeat(entry, index, name));
  const times: number[][] = names.map(() => []);
  try {
    requireEqual(suite.title, "warm-up", names, await askEach(seats, { verb: "prepare" }));
    for (let round = 0; round < suite.rounds; round++) {
      const answers = await playRound(seats, round);
      requireEqual(suite.title, `round ${round}`, names, answers);
      for (const [i, answer] of answers.entries()) times[i]?.push(answer.value);
    }
    requireEqual(suite.title, "final state", names, await askEach(seats, { verb: "finish" }));
  } finally {
    for (const seat of seats) seat.close();
  }
  const rows = names.map((contender, i) => timedRow(contender, times[i] ?? [], times[0] ?? []));
  return { title: suite.title, operation: suite.operation, rounds: suite.rounds, rows };
}

/** Asks one seat after the other, so that none disturbs another. */
async function askEach(seats: readonly Seat[], question: Question): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const seat of seats) answers.push(await seat.ask(question));
  return answers;
}

/** Lets every seat play one round, each time with another one first. Answers come in the order of seats. */
async function playRound(seats: readonly Seat[], round: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let turn = 0; turn < seats.length; turn++) {
    const i = (turn + round) % seats.length;
    answers[i] = await (seats[i] as Seat).ask({ verb: "round" });
  }
  return answers;
}

function requireEqual(title: string, when: string, names: readonly string[], answers: readonly Answer[]): void {
  const sums = answers.map((answer) => answer.checksum);
  if (sums.every((sum) => sum === sums[0])) return;
  const told = names.map((name, i) => `${name} ${sums[i]}`).join(", ");
  throw new Error(`Expected equal checksums in "${title}", ${when}, got ${told}.`);
}

function timedRow(contender: string, times: readonly number[], first: readonly number[]): TimedRow {
  return {
    contender,
    medianUs: median(times),
    p10Us: quantile(times, 0.1),
    p90Us: quantile(times, 0.9),
    ratio: median(times.map((value, round) => value / (first[round] as number))),
  };
}

async function size(entry: string, suite: SizeSuite, index: number): Promise<Result> {
  const rows: SizeRow[] = [];
  for (const contender of Object.keys(suite.contenders)) {
    const bytes: number[] = [];
    for (const column of suite.columns.keys()) {
      const seat = openSeat(entry, index, contender);
      bytes.push((await seat.ask({ verb: "size", column })).value);
      seat.close();
    }
    rows.push({ contender, bytes });
  }
  return { title: suite.title, columns: suite.columns, rows };
}

function heading(machine: Machine): string {
  const { cpu, cores, os, node, v8, kvroute, date, load } = machine;
  return `kvroute ${kvroute}, ${date}: ${cpu}, ${cores} cores, load ${load.toFixed(1)}, ${os}, Node ${node}, V8 ${v8}`;
}

function markdown(result: Result): string {
  if ("columns" in result) {
    const rows = result.rows.map((row) => [row.contender, ...row.bytes.map(bytesText)]);
    return `${result.title}\n\n${table([["", ...result.columns], ...rows])}`;
  }
  const head = ["", "us, median", "10th to 90th percentile", "ratio"];
  const rows = result.rows.map((row) => [
    row.contender,
    row.medianUs.toFixed(2),
    `${row.p10Us.toFixed(2)} to ${row.p90Us.toFixed(2)}`,
    row.ratio.toFixed(2),
  ]);
  return `${result.title}\nOne operation: ${result.operation}. ${result.rounds} rounds.\n\n${table([head, ...rows])}`;
}

function bytesText(bytes: number): string {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(0)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
