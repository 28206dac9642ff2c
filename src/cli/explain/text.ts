import Table from "cli-table3";
import type { RouteExplanation } from "../../gateway/explain.js";
import { formatCount } from "../report.js";

const TEXT_LENGTH_MAX = 40;
const DIGITS = 4;
/** The term that decides, and one that stands in a column of its own. */
const COST = "cost";
const OVERLAP = "overlapBlocks";

/** Says for people where a request would go, and what each worker had to say for itself. */
export function formatExplanation(path: string, explanation: RouteExplanation): string {
  const { model, promptBytes, promptTokens, blocks, session, decision, policy, worker, excluded, candidates } =
    explanation;
  const size = `${formatCount(promptBytes)} bytes of prompt, about ${formatCount(promptTokens)} tokens`;
  const asked = model === "" ? "no model named" : `model ${plain(model)}`;
  const named = session === undefined ? "No session" : `Session ${plain(session.id)}, by its ${plain(session.source)}`;
  const left = excluded.map(({ worker, reason }) => `Left out: ${quiet(worker)} (${quiet(reason)}).\n`).join("");
  return `${path}, ${asked}: ${size}, ${formatCount(blocks)} full blocks.
${named}${decision === undefined ? "" : `; ${decision}`}.
${worker === undefined ? "All workers that may have it are busy: it waits." : `Policy ${plain(policy)} sends it to ${quiet(worker)}.`}

${candidates.length === 0 ? "" : tableOf(explanation)}${left}`;
}

/** Draws the workers; a term that is the same for all of them stands below. */
function tableOf({ candidates, blocks }: RouteExplanation): string {
  const names = [...new Set(candidates.flatMap(({ terms }) => Object.keys(terms)))].filter((name) => name !== OVERLAP);
  const valuesOf = (name: string) => new Set(candidates.map(({ terms }) => terms[name]));
  const telling = names.filter((name) => name === COST || valuesOf(name).size > 1);
  const head = ["", "worker", "cached blocks", "cached tokens", "in flight", ...telling.map(plain)];
  const table = new Table({
    head,
    colAligns: head.map((_, column) => (column < 2 ? "left" : "right")),
    style: { compact: true, head: [], border: [] }, // no colour
  });
  for (const { worker, isChosen, cachedBlocks, cachedTokens, inFlight, terms } of candidates) {
    const cached = [`${formatCount(cachedBlocks)} of ${formatCount(blocks)}`, formatCount(cachedTokens)];
    const figures = telling.map((name) => formatTerm(terms[name]));
    table.push([isChosen ? "*" : "", quiet(worker), ...cached, formatCount(inFlight), ...figures]);
  }
  const same = names.filter((name) => !telling.includes(name));
  const figures = same.map((name) => `${plain(name)} ${formatTerm(candidates[0]?.terms[name])}`).join(", ");
  return `${table.toString()}\n${same.length === 0 ? "" : `The same for all: ${figures}.\n`}`;
}

function formatTerm(value: number | undefined): string {
  if (value === undefined) return "";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(DIGITS)));
}

/** Keeps what others say from being long, and from speaking to the terminal. */
function plain(text: string): string {
  return quiet(text.length <= TEXT_LENGTH_MAX ? text : `${text.slice(0, TEXT_LENGTH_MAX)}…`);
}

/** Keeps a text from speaking to the terminal, and from being more than one line. */
export function quiet(text: string): string {
  return text.replace(/\p{C}/gu, "?");
}
