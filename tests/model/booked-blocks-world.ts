import { BookedBlocks, coreOfBooked } from "../../src/core/booked-blocks.js";
import type { CheckedExports } from "../../src/core/exports.js";
import { same, sameOutcome } from "../support/agree.js";
import { type Outcome, outcomeOf } from "../support/side.js";
import { type BookedOptions, type BookedUnderTest, NaiveBooked, nameOf } from "./booked-blocks-naive.js";

/** One call, the same on every table. What it gives back can be compared. */
export interface BookedCall {
  readonly text: string;
  readonly act: (blocks: BookedUnderTest) => unknown;
}

/** Checks every inner law of the core by walking it; does nothing on the shipped core. */
export function verifyBooked(blocks: BookedUnderTest): void {
  if (!(blocks instanceof BookedBlocks)) return;
  const core = coreOfBooked(blocks);
  if (!("verifyBooked" in core.exports)) return;
  try {
    (core.exports as CheckedExports).verifyBooked();
  } catch (trap) {
    throw core.panic(trap);
  }
}

/** Makes the runtime refuse the k-th memory growth from now on. Returns whether the core has a way to. */
export function failBookedGrowth(blocks: BookedBlocks, k: number): boolean {
  const { exports } = coreOfBooked(blocks);
  if (!("refuseGrowth" in exports)) return false;
  (exports as CheckedExports).refuseGrowth(k);
  return true;
}

/** Asks for the potential of a list, by worker in the order of their names. */
export function askPotential(blocks: BookedUnderTest, hashes: readonly bigint[], hot: number) {
  const { workers, blocks: counts, hotBlocks } = blocks.potential(hashes, hot);
  const active = workers.map((worker, index) => [nameOf(worker), counts[index]] as const);
  return { hotBlocks, active: active.sort(([a], [b]) => (a < b ? -1 : 1)) };
}

/** The table under test beside the naive one: every call goes to both, and everything that can be seen must agree. */
export class BookedWorld {
  readonly model: NaiveBooked;
  /** The calls that met a limit of memory, which the naive table does not have. */
  readonly limited: string[] = [];

  constructor(
    readonly real: BookedBlocks,
    options: BookedOptions = {},
  ) {
    this.model = new NaiveBooked(options);
  }

  /** Calls both and compares what they did. */
  call({ text, act }: BookedCall): Outcome {
    const actual = outcomeOf(() => act(this.real));
    if ("code" in actual && actual.code === "KVROUTE_MEMORY_LIMIT") this.limited.push(text);
    else
      sameOutcome(
        text,
        outcomeOf(() => act(this.model)),
        actual,
      );
    same(`size after ${text}`, this.model.size, this.real.size);
    verifyBooked(this.real);
    return actual;
  }

  /** Compares what can be seen of some hashes: who holds them, how often, and how many wait. */
  compare(hashes: readonly bigint[]): void {
    for (const hash of hashes) {
      const waiting = this.model.waitingFor(hash);
      for (const hot of [Math.max(1, waiting), waiting + 1]) this.#ask([hash], hot);
      for (const worker of this.model.workers()) {
        const ask = (blocks: BookedUnderTest) => outcomeOf(() => blocks.sole(worker, [hash]));
        sameOutcome(`sole(${nameOf(worker)}, ${hash})`, ask(this.model), ask(this.real));
      }
    }
    this.#ask(hashes, 1);
    this.#ask([...hashes, ...hashes].reverse(), 2);
  }

  /** Takes every reference back, one by one: then nothing is left. */
  drain(): void {
    for (const { worker, hash } of [...this.model.references()]) {
      const waits = this.model.waitingFor(hash) > 0;
      this.call({ text: `drain ${nameOf(worker)} ${hash}`, act: (blocks) => blocks.unbook(worker, [hash], waits) });
    }
    same("size at the end", { blocks: 0, entries: 0 }, this.real.size);
  }

  #ask(hashes: readonly bigint[], hot: number): void {
    const expected = askPotential(this.model, hashes, hot);
    same(`potential([${hashes}], ${hot})`, expected, askPotential(this.real, hashes, hot));
  }
}
