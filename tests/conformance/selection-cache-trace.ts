import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { OrderRow } from "../model/selection-cache-subject.js";

interface Counters {
  readonly len: number;
  readonly orderLen: number;
  readonly totalBytes: number;
}

interface Key {
  readonly model: string;
  readonly group: string;
  readonly id: string;
}

interface Fields {
  readonly workerId: string;
  readonly dpRank: number;
  readonly islTokens: number;
  readonly effectivePrefillTokens: number;
  readonly expectedOutputTokens: number | null;
  readonly trackPrefillTokens: boolean;
  readonly lora: string | null;
}

interface Inserted extends Key, Fields {
  readonly hashes: number | readonly string[];
  readonly nowMs: number;
  readonly generation: number;
}

/** What a peek sees of a selection: every field, and of the hashes their number. */
export interface Seen extends Fields {
  readonly generation: number;
  readonly hashCount: number;
}

/** One line of a trace: an operation, what it returned, and the counters after it. */
export type Line = Counters &
  (
    | ({ readonly op: "insert" } & Inserted)
    | ({ readonly op: "insertAt"; readonly insertedAtMs: number } & Inserted)
    | ({ readonly op: "peek"; readonly nowMs: number; readonly result: Seen | null } & Key)
    | ({ readonly op: "remove"; readonly generation: number; readonly removed: boolean } & Key)
    | ({ readonly op: "discard"; readonly removed: boolean } & Key)
    | { readonly op: "order"; readonly list: readonly OrderRow[] }
  );

export type InsertLine = Extract<Line, { op: "insert" | "insertAt" }>;

/** The first line of a trace; null is no limit. */
interface Header {
  readonly format: string;
  readonly ttlMs: number;
  readonly maxEntries: number | null;
  readonly maxBytes: number | null;
  readonly note: string;
}

export interface Trace {
  readonly file: string;
  readonly header: Header;
  /** `lines[i]` stands in line i + 2 of the file. */
  readonly lines: readonly string[];
}

const folder = new URL("./vectors/selection-cache/", import.meta.url);

export function readTraces(): Trace[] {
  return readdirSync(folder).sort().map(readTrace);
}

function readTrace(file: string): Trace {
  const bytes = readFileSync(new URL(file, folder));
  const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  const [first = "", ...lines] = text.split("\n").filter((line) => line !== "");
  const header = JSON.parse(first) as Header;
  if (header.format !== "selection-cache-trace/1") throw new Error(`${file}:1: unknown format ${header.format}`);
  return { file, header, lines };
}
