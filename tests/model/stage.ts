import { isDeepStrictEqual } from "node:util";
import { same, sameOutcome, sameState } from "../support/agree.js";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { outcomeOf, Side } from "../support/side.js";
import { naive } from "../support/subjects.js";
import type { NaivePool } from "./naive-pool.js";
import type { Call } from "./world.js";

/** A pool is emptied and used again, so that slots change hands; now and then there is a new one. */
const SCENES_PER_POOL = 128;

/** Plays paths of calls on a pool and on the naive one, and compares both after the last call of each. */
export class Stage<P extends PoolUnderTest> {
  readonly #subject: Subject<P>;
  readonly #capacity: number;
  readonly #hashes: readonly bigint[];
  #model: Side<NaivePool>;
  #real: Side<P>;
  #path: readonly Call[] = [];
  #scenes = 0;

  constructor(subject: Subject<P>, capacity: number, hashes: readonly bigint[]) {
    this.#subject = subject;
    this.#capacity = capacity;
    this.#hashes = hashes;
    this.#model = this.#modelAfter([]);
    this.#real = new Side(subject.create({ capacity }));
  }

  /** The naive pool where both stand. */
  get model(): Side<NaivePool> {
    return this.#model;
  }

  /** Tells the calls that change something after a path from those that are refused or have no effect. */
  sort(path: readonly Call[], alphabet: (model: Side<NaivePool>) => Call[]): { changing: Call[]; refused: Call[] } {
    let model = this.#modelAfter(path);
    const before = snapshot(model);
    const changing: Call[] = [];
    const refused: Call[] = [];
    for (const call of alphabet(model)) {
      const outcome = outcomeOf(() => call.act(model));
      if ("code" in outcome || outcome.value === null || isDeepStrictEqual(before, snapshot(model))) {
        refused.push(call);
      } else {
        changing.push(call);
        model = this.#modelAfter(path);
      }
    }
    return { changing, refused };
  }

  /** Brings both pools to the end of a path: by its last call if they stand before it, else from the start. */
  at(path: readonly Call[]): void {
    if (!this.#standsBefore(path)) {
      this.#clear();
      for (const call of path.slice(0, -1)) this.#play(path, call);
    }
    const last = path.at(-1);
    if (last !== undefined) this.#playAndCompare(path, last);
    this.#path = path;
  }

  /** Makes calls that change nothing; both pools stay where they are. */
  refuse(call: Call): void {
    this.#playAndCompare([...this.#path, call], call);
  }

  #standsBefore(path: readonly Call[]): boolean {
    return path.length === this.#path.length + 1 && this.#path.every((call, index) => call === path[index]);
  }

  #play(path: readonly Call[], call: Call): void {
    const expected = outcomeOf(() => call.act(this.#model));
    this.#blame(path, () =>
      sameOutcome(
        call.text,
        expected,
        outcomeOf(() => call.act(this.#real)),
      ),
    );
  }

  #playAndCompare(path: readonly Call[], call: Call): void {
    this.#play(path, call);
    this.#blame(path, () => {
      sameState(this.#model, this.#real, this.#hashes);
      this.#subject.verify(this.#real.pool);
    });
  }

  /** Empties the pool under test as a user would, by ending, releasing and evicting everything. */
  #clear(): void {
    const emptied = ++this.#scenes % SCENES_PER_POOL !== 0;
    if (emptied) this.#blame(this.#path, () => empty(this.#model, this.#real));
    this.#real = new Side(emptied ? this.#real.pool : this.#subject.create({ capacity: this.#capacity }));
    this.#model = this.#modelAfter([]);
    this.#path = [];
  }

  #modelAfter(path: readonly Call[]): Side<NaivePool> {
    const model = new Side(naive.create({ capacity: this.#capacity }));
    for (const call of path) call.act(model);
    return model;
  }

  #blame(path: readonly Call[], check: () => void): void {
    try {
      check();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const calls = path.map((call) => call.text).join(", ");
      const past = this.#scenes % SCENES_PER_POOL;
      throw new Error(`capacity ${this.#capacity}, ${past} sequences before, then ${calls}: ${message}`, {
        cause: error,
      });
    }
  }
}

function snapshot(model: Side<NaivePool>): unknown {
  return [model.pool.snapshot(), model.reservations.map((_, r) => model.size(r))];
}

function empty(model: Side<NaivePool>, real: Side): void {
  for (const side of [model, real]) {
    for (const reservation of side.reservations) reservation[Symbol.dispose]();
  }
  for (let ids = model.pool.releasable(); ids.length > 0; ids = model.pool.releasable()) {
    for (const copy of model.known(Float64Array.from(ids))) {
      model.release(copy);
      real.release(copy);
    }
  }
  const everything = real.reserve([], real.pool.capacity);
  if (everything !== null) real.cancel(everything.reservation);
  same("counters of an emptied pool", { active: 0, refs: 0, inactive: 0 }, real.counters());
}
