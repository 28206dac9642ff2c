import { describe, expect, test } from "vitest";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { scale } from "../support/scale.js";
import type { IndexOptions, IndexUnderTest } from "./prefix-index-naive.js";
import { type IndexCall, IndexWorld, makePrefixIndex } from "./prefix-index-world.js";

const [A, B, C] = [0xa000_0000_0000_000an, 0xb000_0000_0000_000an, 0xcn] as const; // A and B are equal in their lower half
const HASHES = [A, B, C];
const WORKERS: readonly WorkerWithDpRank[] = [
  { workerId: 1, dpRank: 0 },
  { workerId: 2, dpRank: 0 },
];

/** Every call of a small alphabet. */
const ALPHABET: readonly IndexCall[] = WORKERS.flatMap((worker) => {
  const stores: [readonly bigint[], bigint?][] = [[[A]], [[A, B]], [[B], A], [[C], B], [[A, C]]];
  return [
    ...stores.map(([hashes, parent]) => ({
      text: `store(${worker.workerId}, [${hashes}], ${parent})`,
      act: (index: IndexUnderTest) => index.store(worker, hashes, parent === undefined ? {} : { parent }),
    })),
    { text: `remove(${worker.workerId}, A)`, act: (index: IndexUnderTest) => index.remove(worker, [A]) },
    { text: `remove(${worker.workerId}, B)`, act: (index: IndexUnderTest) => index.remove(worker, [B]) },
    { text: `limit(${worker.workerId}, 1)`, act: (index: IndexUnderTest) => index.limit(worker, 1) },
    { text: `clear(${worker.workerId})`, act: (index: IndexUnderTest) => index.clear(worker) },
    {
      text: `removeWorker(${worker.workerId})`,
      act: (index: IndexUnderTest) => index.removeWorker(worker.workerId),
    },
  ];
});

/** Runs every sequence of calls of a length on an index and on the naive one. Returns how many there are. */
function enumerate(options: IndexOptions, length: number): number {
  const real = makePrefixIndex(options);
  let count = 0;
  const digits = new Array<number>(length).fill(0);
  do {
    const world = new IndexWorld(real, options, HASHES);
    for (const digit of digits) world.call(ALPHABET[digit] as IndexCall);
    world.compareHolders();
    compareChains(world);
    for (const { workerId } of WORKERS) real.removeWorker(workerId); // empty again, for the next sequence
    expect(real.size).toEqual({ blocks: 0, entries: 0 });
    count++;
  } while (increment(digits));
  return count;
}

function compareChains(world: IndexWorld): void {
  const chains = [
    [A, B],
    [A, C],
    [A, B, C],
    [B, C],
  ];
  for (const chain of chains) {
    world.call({ text: `overlap(${chain})`, act: (index) => index.overlap(chain) });
  }
}

/** Counts up in the base of the alphabet. Returns false once it starts again at 0. */
function increment(digits: number[]): boolean {
  for (let place = 0; place < digits.length; place++) {
    digits[place] = ((digits[place] as number) + 1) % ALPHABET.length;
    if (digits[place] !== 0) return true;
  }
  return false;
}

describe("every sequence of calls has the outcome of the naive index", () => {
  const length = scale < 1 ? 2 : 3;
  for (const options of [{}, { maxEntries: 1 }, { maxEntries: 2 }, { maxEntries: 3, maxEntriesPerWorker: 2 }]) {
    test(`of ${length} calls, with ${JSON.stringify(options)}`, () => {
      expect(enumerate(options, length)).toBe(ALPHABET.length ** length);
    });
  }
});
