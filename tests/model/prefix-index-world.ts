import type { CheckedExports } from "../../src/core/exports.js";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { coreOfIndex, PrefixIndex } from "../../src/core/prefix-index.js";
import { same, sameOutcome } from "../support/agree.js";
import { type Outcome, outcomeOf } from "../support/side.js";
import { type IndexOptions, type IndexUnderTest, NaiveIndex } from "./prefix-index-naive.js";

/** One call, the same on every index. */
export interface IndexCall {
  readonly text: string;
  readonly act: (index: IndexUnderTest) => unknown;
}

/** Makes the index under test. */
export type MakeIndex = (options: IndexOptions & { maxMemoryBytes?: number }) => IndexUnderTest;

export const makePrefixIndex: MakeIndex = (options) => new PrefixIndex(options);

/** Checks every inner law of the core by walking it; does nothing on the shipped core, or on no core. */
export function verifyIndex(index: IndexUnderTest): void {
  if (!(index instanceof PrefixIndex)) return;
  const core = coreOfIndex(index);
  if (!("verifyIndex" in core.exports)) return;
  try {
    (core.exports as CheckedExports).verifyIndex();
  } catch (trap) {
    throw core.panic(trap);
  }
}

/** Makes the runtime refuse the k-th memory growth from now on. Returns whether the core has a way to. */
export function failIndexGrowth(index: IndexUnderTest, k: number): boolean {
  if (!(index instanceof PrefixIndex)) return false;
  const { exports } = coreOfIndex(index);
  if (!("refuseGrowth" in exports)) return false;
  (exports as CheckedExports).refuseGrowth(k);
  return true;
}

/** The index under test beside the naive one: every call goes to both, and everything that can be seen must agree. */
export class IndexWorld {
  readonly model: NaiveIndex;
  readonly real: IndexUnderTest;
  /** The calls that met a limit of memory, which the naive index does not have. */
  readonly limited: string[] = [];
  readonly #hashes: readonly bigint[];

  /** `hashes` are all that the calls name. An index that was used before must be empty. */
  constructor(real: IndexUnderTest, options: IndexOptions, hashes: readonly bigint[]) {
    this.real = real;
    this.model = new NaiveIndex(options);
    this.#hashes = hashes;
    const { evicted, expired } = real.stats;
    Object.assign(this.model.stats, { evicted, expired });
  }

  /** Calls both and compares what they did. */
  call({ text, act }: IndexCall): Outcome {
    const actual = outcomeOf(() => act(this.real));
    if ("code" in actual && actual.code === "KVROUTE_MEMORY_LIMIT") {
      this.limited.push(text);
    } else {
      const expected = outcomeOf(() => act(this.model));
      sameOutcome(text, expected, actual);
    }
    this.compare();
    return actual;
  }

  /** Compares the counters, and checks the inner laws. */
  compare(): void {
    same("size", this.model.size, this.real.size);
    same("stats", this.model.stats, this.real.stats);
    verifyIndex(this.real);
  }

  /** Compares who holds what. Where blocks have a time to live, it needs the time. */
  compareHolders(nowMs?: number): void {
    for (const hash of this.#hashes) {
      same(`holders of ${hash}`, holdersOf(this.model, hash, nowMs), holdersOf(this.real, hash, nowMs));
    }
    this.compare();
  }
}

function holdersOf(index: IndexUnderTest, hash: bigint, nowMs?: number): WorkerWithDpRank[] {
  return index.overlap([hash], nowMs).map(({ worker }) => worker);
}
