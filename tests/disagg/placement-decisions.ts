import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

/** One operation of decisions.jsonl, with the state after it. */
export interface Decision {
  readonly op: "choosePrefill" | "releasePrefill" | "chooseDecode" | "recordAffinity" | "evictAffinity";
  readonly rank?: number;
  readonly session?: string | null;
  readonly panic?: string;
  readonly inFlight: readonly string[];
  readonly sessions: number;
}

export interface DecisionCase {
  readonly case: string;
  readonly note: string;
  readonly config: { readonly prefillWorkers: readonly number[]; readonly decodeWorkers: readonly number[] };
  readonly decisions: readonly Decision[];
}

/** Reads the recorded decisions of the original, case by case. */
export function readDecisions(): DecisionCase[] {
  const bytes = readFileSync(new URL("../conformance/vectors/router/decisions.jsonl.gz", import.meta.url));
  const cases: (DecisionCase & { decisions: Decision[] })[] = [];
  for (const line of gunzipSync(bytes).toString("utf8").split("\n")) {
    if (line === "") continue;
    const parsed = JSON.parse(line) as Decision & DecisionCase & { format?: string };
    if (parsed.format !== undefined) cases.push({ ...parsed, decisions: [] });
    else cases.at(-1)?.decisions.push(parsed);
  }
  return cases;
}
