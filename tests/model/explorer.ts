import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import type { Side } from "../support/side.js";
import type { NaivePool } from "./naive-pool.js";
import { Stage } from "./stage.js";
import type { Call } from "./world.js";

const A = 0xa000_0000_0000_000an;
const B = 0xb000_0000_0000_000an; // equal to A in its lower half
const PREFIXES: readonly (readonly bigint[])[] = [[], [A], [B], [A, A], [A, B], [B, A], [B, B]];
const FRESH_MAX = 2;

/** What an exploration has seen. */
export interface Explored {
  /** Sequences of up to `depth` operations, those that are refused included. */
  sequences: bigint;
  /** Different paths of operations that change something; each was run on its own. */
  paths: number;
}

/**
 * Runs every sequence of up to `depth` operations from a prepared start on a pool and on the naive one.
 *
 * An operation that the rules refuse must change nothing, which is compared on the spot, so what may follow it is what
 * may follow without it: refused operations are run where they occur, all of them one after the other, and only
 * operations that change something open a new path.
 */
export function explore<P extends PoolUnderTest>(
  subject: Subject<P>,
  { capacity, depth, start = [] }: { capacity: number; depth: number; start?: readonly Call[] },
): Explored {
  const explored = { sequences: 0n, paths: 0 };
  withoutStacks(() => {
    const stage = new Stage(subject, capacity, [A, B]);
    stage.at(start);
    const counts = branch(stage, [...start], depth, explored);
    explored.sequences = counts.reduce((sum, count) => sum + count, 0n);
  });
  return explored;
}

/** Runs the same sequences, each on its own from the start, refused operations included. Returns how many there are. */
export function enumerate<P extends PoolUnderTest>(subject: Subject<P>, capacity: number, depth: number): bigint {
  const stage = new Stage(subject, capacity, [A, B]);
  const visit = (path: readonly Call[], left: number): bigint => {
    stage.at(path);
    if (left === 0) return 1n;
    return alphabet(stage.model).reduce((sum, call) => sum + visit([...path, call], left - 1), 1n);
  };
  return withoutStacks(() => visit([], depth));
}

/** Refusals come by the hundred thousand, and nobody reads their stacks. */
function withoutStacks<T>(run: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Explores what may follow a path. Returns how many sequences of 0, 1, … operations follow it. */
function branch<P extends PoolUnderTest>(stage: Stage<P>, path: Call[], depth: number, explored: Explored): bigint[] {
  explored.paths++;
  if (depth === 0) return [1n];
  const { changing, refused } = stage.sort(path, alphabet);
  for (const call of refused) stage.refuse(call);
  const children = changing.map((call) => {
    const longer = [...path, call];
    stage.at(longer);
    return branch(stage, longer, depth - 1, explored);
  });
  const counts = [1n];
  for (let length = 1; length <= depth; length++) {
    let count = BigInt(refused.length) * (counts[length - 1] ?? 0n);
    for (const child of children) count += child[length - 1] ?? 0n;
    counts.push(count);
  }
  return counts;
}

/** Every operation whose arguments exist. */
function alphabet(model: Side<NaivePool>): Call[] {
  const calls = PREFIXES.flatMap((prefix) =>
    Array.from({ length: FRESH_MAX + 1 }, (_, fresh) => reserve(prefix, fresh)),
  );
  for (const r of model.reservations.keys()) {
    calls.push({ text: `activate(r${r})`, act: (side) => side.activate(r) });
    calls.push({ text: `allocatePrivate(r${r})`, act: (side) => side.allocatePrivate(r) });
    calls.push({ text: `allocateCached(r${r}, A)`, act: (side) => side.allocateCached(r, A) });
    calls.push({ text: `allocateCached(r${r}, B)`, act: (side) => side.allocateCached(r, B) });
    calls.push({ text: `cancel(r${r})`, act: (side) => side.cancel(r) });
  }
  for (const c of model.ids.keys()) {
    calls.push({ text: `cache(c${c}, A)`, act: (side) => side.cache(c, A) });
    calls.push({ text: `cache(c${c}, B)`, act: (side) => side.cache(c, B) });
    calls.push({ text: `release(c${c})`, act: (side) => side.release(c) });
  }
  return calls;
}

function reserve(prefix: readonly bigint[], fresh: number): Call {
  const names = prefix.map((hash) => (hash === A ? "A" : "B")).join("");
  return { text: `reserve(${names}, ${fresh})`, act: (side) => side.reserve(prefix, fresh) };
}

/** Starts of which a few operations lead to evictions and duplicates. All are allocated by one reservation. */
export function filled(hashes: string): Call[] {
  const calls = [reserve([], hashes.length)];
  for (const [c, name] of [...hashes].entries()) {
    const hash = name === "A" ? A : B;
    calls.push({ text: `allocateCached(r0, ${name})`, act: (side) => side.allocateCached(0, hash) });
    calls.push({ text: `release(c${c})`, act: (side) => side.release(c) });
  }
  return calls;
}
