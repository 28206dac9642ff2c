import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

interface Counters {
  readonly active: number;
  readonly refs: number;
  readonly inactive: number;
}

interface Size {
  readonly len: number;
  readonly freshLen: number;
}

interface Granted extends Size {
  readonly ok: true;
  readonly id: string;
  readonly pinned: readonly string[];
  readonly removed: readonly string[];
}

/** One operation with its arguments; `copy` is null where no pool ever issued the handle. */
export type Operation =
  | { readonly op: "reserve"; readonly prefix: readonly string[]; readonly fresh: number }
  | { readonly op: "prefixHit"; readonly hash: string }
  | { readonly op: "activatePrefix"; readonly id: string }
  | { readonly op: "allocatePrivate"; readonly id: string }
  | { readonly op: "allocateCached"; readonly id: string; readonly hash: string }
  | { readonly op: "cachePrivate"; readonly copy: string | null; readonly hash: string }
  | { readonly op: "release"; readonly copy: string | null }
  | { readonly op: "cancel"; readonly id: string }
  | { readonly op: "lru" };

type Of<Op extends Operation["op"]> = Extract<Operation, { readonly op: Op }>;

/** One line of a trace: an operation, what it returned, and the counters after it. */
export type Line = Counters &
  (
    | (Of<"reserve"> & (Granted | { readonly ok: false }))
    | (Of<"prefixHit"> & { readonly result: { readonly isActive: boolean } | null })
    | (Of<"activatePrefix"> & Size & { readonly copies: readonly string[] })
    | (Of<"allocatePrivate"> & Size & { readonly copy: string })
    | (Of<"allocateCached"> & Size & { readonly copy: string; readonly becameVisible: boolean })
    | (Of<"cachePrivate"> & { readonly copy: string; readonly becameVisible: boolean })
    | (Of<"release"> & { readonly copy: string })
    | Of<"cancel">
    | (Of<"lru"> & { readonly list: readonly (readonly [string, string])[] })
  );

/** One misuse of panics.jsonl. */
export interface Panic {
  readonly name: string;
  readonly note: string;
  readonly capacity: number;
  readonly setup: readonly Line[];
  readonly op: Operation | { readonly op: "new"; readonly capacity: number };
  readonly panic: string;
  readonly before?: Counters;
  readonly foreign?: boolean;
  readonly foreignCapacity?: number;
  readonly foreignSetup?: readonly Line[];
}

export interface Trace {
  readonly file: string;
  readonly capacity: number;
  readonly note: string;
  readonly lines: readonly string[];
}

const folder = new URL("./vectors/block-pool/", import.meta.url);

/** Every trace of the folder; `lines[i]` stands in line i + 2 of its file. */
export function readTraces(): Trace[] {
  const files = readdirSync(folder).filter((file) => file !== "panics.jsonl");
  return files.sort().map((file) => {
    const [header = "", ...lines] = readLines(file);
    const { format, capacity, note } = JSON.parse(header) as { format: string; capacity: number; note: string };
    if (format !== "block-pool-trace/1") throw new Error(`${file}:1: unknown format ${format}`);
    return { file, capacity, note, lines };
  });
}

export function readPanics(): Panic[] {
  return readLines("panics.jsonl").map((line) => JSON.parse(line) as Panic);
}

function readLines(file: string): string[] {
  const bytes = readFileSync(new URL(file, folder));
  const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  return text.split("\n").filter((line) => line !== "");
}
