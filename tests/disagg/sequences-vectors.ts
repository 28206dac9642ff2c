import { readFileSync } from "node:fs";

interface Sent {
  readonly ev: "send";
  readonly from: number;
  readonly to: number;
  readonly tag: number;
  readonly hex: string;
}

interface Result {
  readonly ev: "result";
  readonly request: number;
  readonly ok: boolean;
  readonly tokens?: readonly string[];
  readonly nextRequestId: string;
  readonly sessions: number;
}

interface Header {
  readonly case: string;
  readonly delivery: "by-tag" | "in-order";
  readonly concurrent: boolean;
  readonly config: {
    readonly prefillWorkers: readonly number[];
    readonly decodeWorkers: readonly number[];
    readonly routerRank: number;
    readonly maxKvTransferBytes: number;
  };
  readonly requests: readonly {
    readonly promptTokens: readonly string[];
    readonly seqLen: number;
    readonly maxNewTokens: number;
    readonly session: string | null;
  }[];
}

/** One transcript of the original. */
export interface Sequence extends Header {
  readonly stalled: boolean;
  readonly sent: readonly Sent[];
  readonly results: readonly Result[];
}

type Line = (Header & { readonly format: string }) | Sent | Result | { readonly ev: "end"; readonly stalled: boolean };

const text = readFileSync(new URL("../conformance/vectors/router/sequences.jsonl", import.meta.url), "utf8");

/** The transcripts, by the name of their case. */
export const sequences: ReadonlyMap<string, Sequence> = read(text.trim().split("\n"));

function read(lines: readonly string[]): Map<string, Sequence> {
  const cases = new Map<string, Sequence>();
  let last: { stalled: boolean; sent: Sent[]; results: Result[] } | undefined;
  for (const line of lines.map((row) => JSON.parse(row) as Line)) {
    if ("format" in line) {
      const sequence = { ...line, stalled: false, sent: [], results: [] };
      cases.set(line.case, sequence);
      last = sequence;
    } else if (line.ev === "send") last?.sent.push(line);
    else if (line.ev === "result") last?.results.push(line);
    else if (line.ev === "end" && last !== undefined) last.stalled = line.stalled;
  }
  return cases;
}
