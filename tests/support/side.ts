import { KvrouteError } from "../../src/errors.js";
import type { PoolUnderTest, ReservationUnderTest, ReserveOutcomeUnderTest } from "./pool-under-test.js";

/** A copy by its number in order of allocation, or an id as it is, for ids that no pool ever issued. */
export type CopyRef = number | { readonly raw: number };

/** A reservation by its number in order of success, or one of another pool. */
export type ReservationRef = number | "foreign";

export interface Reserved {
  readonly reservation: number;
  readonly length: number;
  readonly freshLength: number;
  readonly removed: readonly bigint[];
}

/**
 * A pool in which copies and reservations have numbers instead of handles, so that two pools can be compared.
 *
 * Copies are numbered in order of allocation, reservations in order of success. A pool that issues an id twice fails here.
 */
export class Side<P extends PoolUnderTest = PoolUnderTest> {
  readonly ids: number[] = [];
  readonly reservations: ReservationUnderTest[] = [];
  readonly #numbers = new Map<number, number>();

  constructor(
    readonly pool: P,
    readonly foreign?: ReservationUnderTest,
  ) {}

  counters(): { active: number; refs: number; inactive: number } {
    return { active: this.pool.numActive, refs: this.pool.numActiveRefs, inactive: this.pool.numInactive };
  }

  lru(): number[] {
    return this.known(this.pool.inactiveIds());
  }

  size(ref: ReservationRef): { length: number; freshLength: number } {
    const { length, freshLength } = this.reservation(ref);
    return { length, freshLength };
  }

  hit(hash: bigint): { isActive: boolean } | null {
    return this.pool.prefixHit(hash);
  }

  match(hashes: readonly bigint[] | BigUint64Array): { resident: number; active: number } {
    return this.pool.matchPrefix(hashes);
  }

  reserve(prefix: readonly bigint[] | BigUint64Array, fresh: number): Reserved | null {
    return this.#enter(this.pool.reserve(prefix, fresh));
  }

  reserveResident(candidates: readonly bigint[] | BigUint64Array, total: number): Reserved | null {
    return this.#enter(this.pool.reserveResidentPrefix(candidates, total));
  }

  activate(ref: ReservationRef): number[] {
    return this.known(this.pool.activatePrefix(this.reservation(ref)));
  }

  allocatePrivate(ref: ReservationRef): number {
    return this.#issue(this.pool.allocatePrivate(this.reservation(ref)));
  }

  allocateCached(ref: ReservationRef, hash: bigint): { copy: number; becameVisible: boolean } {
    const { id, becameVisible } = this.pool.allocateCached(this.reservation(ref), hash);
    return { copy: this.#issue(id), becameVisible };
  }

  cache(copy: CopyRef, hash: bigint): boolean {
    return this.pool.cachePrivate(this.id(copy), hash);
  }

  release(copy: CopyRef): void {
    this.pool.release(this.id(copy));
  }

  cancel(ref: ReservationRef): void {
    this.pool.cancel(this.reservation(ref));
  }

  disposeReservation(ref: ReservationRef): void {
    this.reservation(ref)[Symbol.dispose]();
  }

  allocateAllPrivate(ref: ReservationRef): number[] {
    return Array.from(this.pool.allocateAllPrivate(this.reservation(ref)), (id) => this.#issue(id));
  }

  allocateAllCached(
    ref: ReservationRef,
    hashes: readonly bigint[] | BigUint64Array,
  ): { copies: number[]; visible: number } {
    const { ids, visible } = this.pool.allocateAllCached(this.reservation(ref), hashes);
    return { copies: Array.from(ids, (id) => this.#issue(id)), visible };
  }

  cacheAll(copies: readonly CopyRef[], hashes: readonly bigint[] | BigUint64Array): number {
    return this.pool.cacheAll(this.idsOf(copies), hashes);
  }

  releaseAll(copies: readonly CopyRef[]): void {
    this.pool.releaseAll(this.idsOf(copies));
  }

  releaseChain(copies: readonly CopyRef[]): void {
    this.pool.releaseChain(Float64Array.from(this.idsOf(copies)));
  }

  id(copy: CopyRef): number {
    if (typeof copy !== "number") return copy.raw;
    const id = this.ids[copy];
    if (id === undefined) throw new Error(`The test names copy c${copy}, but only ${this.ids.length} were allocated.`);
    return id;
  }

  idsOf(copies: readonly CopyRef[]): number[] {
    return copies.map((copy) => this.id(copy));
  }

  /** The numbers of ids that were issued before. */
  known(ids: Float64Array): number[] {
    if (!(ids instanceof Float64Array)) throw new Error("Expected ids as a Float64Array.");
    return Array.from(ids, (id) => {
      const number = this.#numbers.get(id);
      if (number === undefined) throw new Error(`The pool answers with id ${id}, which it never issued.`);
      return number;
    });
  }

  reservation(ref: ReservationRef): ReservationUnderTest {
    const found = ref === "foreign" ? this.foreign : this.reservations[ref];
    if (found === undefined) throw new Error(`The test names reservation r${ref}, which does not exist.`);
    return found;
  }

  #issue(id: number): number {
    if (!Number.isSafeInteger(id) || id < 0) throw new Error(`Expected an id in 53 bits, got ${id}.`);
    if (this.#numbers.has(id)) throw new Error(`The pool issues id ${id} a second time.`);
    this.#numbers.set(id, this.ids.length);
    return this.ids.push(id) - 1;
  }

  #enter(outcome: ReserveOutcomeUnderTest | null): Reserved | null {
    if (outcome === null) return null;
    if (!(outcome.removed instanceof BigUint64Array)) throw new Error("Expected removed hashes as a BigUint64Array.");
    const reservation = this.reservations.push(outcome.reservation) - 1;
    return { reservation, ...this.size(reservation), removed: Array.from(outcome.removed) };
  }
}

/** What a call did: its value, or the code of its typed error and the index that it names. */
export type Outcome =
  | { readonly value: unknown }
  | { readonly code: string; readonly index: number | undefined; readonly message: string };

/** Runs a call. Only typed errors are outcomes; anything else is a failure of the test. */
export function outcomeOf(call: () => unknown): Outcome {
  try {
    return { value: call() };
  } catch (error) {
    if (!(error instanceof KvrouteError)) throw error;
    const index = "index" in error && typeof error.index === "number" ? error.index : undefined;
    return { code: error.code, index, message: error.message };
  }
}
