import { same, sameOutcome, sameState } from "../support/agree.js";
import type { PoolOptions, PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { type Outcome, outcomeOf, Side } from "../support/side.js";
import { naive } from "../support/subjects.js";
import type { NaivePool } from "./naive-pool.js";

/** One call, the same on every pool. */
export interface Call {
  readonly text: string;
  readonly act: (side: Side) => unknown;
}

/** Hashes looked up after every call; beyond it, a window moves over all that are known. */
const LOOKUPS_MAX = 64;

/** The naive pool has no limits of memory, ids or references: where the pool under test meets one, it must do nothing. */
const LIMITS = new Set(["KVROUTE_MEMORY_LIMIT", "KVROUTE_IDS_EXHAUSTED", "KVROUTE_REFERENCES_EXHAUSTED"]);

/** Verbs that may grow memory. No other may ever meet a limit. */
const MAY_MEET_LIMIT = /^(reserve|match|allocateAll|cacheAll|releaseAll|releaseChain|lifeCycle)/;

/** The pool under test beside the naive one: every call goes to both, and everything that can be seen must agree. */
export class World<P extends PoolUnderTest = PoolUnderTest> {
  readonly model: Side<NaivePool>;
  readonly real: Side<P>;
  /** The calls that met a limit, where limits are allowed. */
  readonly limited: string[] = [];
  readonly #subject: Subject<P>;
  readonly #limitsAllowed: boolean;
  readonly #hashes = new Set<bigint>();
  #lookup = 0;

  constructor(subject: Subject<P>, options: PoolOptions & { readonly limitsAllowed?: boolean }) {
    const { capacity, limitsAllowed = false } = options;
    const pool = subject.create(options);
    this.#subject = subject;
    this.#limitsAllowed = limitsAllowed;
    this.model = new Side(naive.create({ capacity }), otherPool(naive).reservation(1));
    this.real = new Side(pool, otherPool(subject).reservation(1));
  }

  /** Remembers hashes that were used, so that they are looked up from now on. */
  know(hashes: Iterable<bigint>): void {
    for (const hash of hashes) this.#hashes.add(hash);
  }

  /** Calls both pools and compares the outcomes, then all that can be seen. */
  step(call: Call): Outcome {
    const outcome = this.call(call);
    this.compare();
    return outcome;
  }

  /** Calls both pools and compares the outcomes alone. */
  call({ text, act }: Call): Outcome {
    const actual = outcomeOf(() => act(this.real));
    if (this.#limitsAllowed && "code" in actual && LIMITS.has(actual.code) && MAY_MEET_LIMIT.test(text)) {
      this.limited.push(text);
      return actual;
    }
    sameOutcome(
      text,
      outcomeOf(() => act(this.model)),
      actual,
    );
    return actual;
  }

  compare(): void {
    sameState(this.model, this.real, this.#window());
    this.#subject.verify(this.real.pool);
  }

  /** Compares everything, with every hash that is known, resident or not. */
  compareAll(): void {
    sameState(this.model, this.real, this.#hashes);
    const known = [...this.#hashes];
    for (let from = 0; from < known.length; from += LOOKUPS_MAX) {
      const some = known.slice(from, from + LOOKUPS_MAX); // few enough for the smallest scratch page
      same("matchPrefix of known hashes", this.model.match(some), this.real.match(some));
    }
    const other = otherPool(this.#subject);
    same(
      "the other pool",
      { active: 3, refs: 1, inactive: 0, length: 3 },
      { ...other.counters(), length: other.size(1).length },
    );
  }

  /** The copies that may be released, by number. */
  releasable(): number[] {
    return this.model.known(Float64Array.from(this.model.pool.releasable()));
  }

  #window(): bigint[] {
    const known = [...this.#hashes];
    if (known.length <= LOOKUPS_MAX) return known;
    this.#lookup = (this.#lookup + LOOKUPS_MAX) % known.length;
    return known.slice(this.#lookup, this.#lookup + LOOKUPS_MAX);
  }
}

const foreignPools = new WeakMap<object, Side>();

/** Another pool of the same kind, with a reservation that holds a pin and room; one is enough, as nobody may change it. */
function otherPool<P extends PoolUnderTest>(subject: Subject<P>): Side {
  let other = foreignPools.get(subject);
  if (other === undefined) {
    other = new Side<PoolUnderTest>(subject.create({ capacity: 4 }));
    other.reserve([], 1);
    other.allocateCached(0, 1n);
    other.reserve([1n], 2);
    foreignPools.set(subject, other);
  }
  return other;
}
