import type { CopyIds, Hashes } from "../../src/core/keys.js";
import type { PoolOptions, PoolUnderTest, ReservationUnderTest } from "../support/pool-under-test.js";
import { checkCapacity, checkCount, checkHash, checkHashes, checkId, checkIds, fail } from "./naive-arguments.js";

export interface Copy {
  readonly id: number;
  hash: bigint | null; // null: private
  refs: number;
  pins: number;
}

class NaiveReservation implements ReservationUnderTest {
  closed = false;

  constructor(
    readonly owner: NaivePool,
    public prefix: Copy[],
    public fresh: number,
  ) {}

  get length(): number {
    return this.prefix.length + this.fresh;
  }

  get freshLength(): number {
    return this.fresh;
  }

  [Symbol.dispose](): void {
    if (!this.closed && !this.owner.disposed) this.owner.cancel(this);
  }
}

/** The block pool as one would explain it: maps in order of insertion, every check before every change, nothing fast. */
export class NaivePool implements PoolUnderTest {
  readonly capacity: number;
  disposed = false;
  protected readonly copies = new Map<number, Copy>();
  protected readonly chains = new Map<bigint, Copy[]>(); // the resident copies of a hash, oldest first
  protected inactive = new Set<Copy>(); // next victim first
  protected reserved = 0;
  protected nextId = 1;

  constructor(options: PoolOptions) {
    this.capacity = checkCapacity(options.capacity);
  }

  get numActive(): number {
    return this.usable().copies.size - this.inactive.size + this.reserved;
  }

  get numActiveRefs(): number {
    let refs = 0;
    for (const copy of this.usable().copies.values()) refs += copy.hash === null ? 1 : copy.refs;
    return refs;
  }

  get numInactive(): number {
    return this.usable().inactive.size;
  }

  prefixHit(hash: bigint): { isActive: boolean } | null {
    const copy = this.usable().oldest(checkHash(hash));
    return copy === undefined ? null : { isActive: this.isActive(copy) };
  }

  matchPrefix(hashes: Hashes): { resident: number; active: number } {
    const run = this.residentRun(this.hashList(hashes));
    return { resident: run.length, active: run.filter((copy) => this.isActive(copy)).length };
  }

  reserve(prefix: Hashes, fresh: number): { reservation: NaiveReservation; removed: BigUint64Array } | null {
    const hashes = this.hashList(prefix);
    checkCount(fresh);
    const hits = hashes.map((hash, index) => this.oldest(hash) ?? fail("MISSING_PREFIX", index));
    const evictions = Math.max(0, fresh - this.free());
    if (evictions > this.inactive.size - this.hidden(hits)) return null;
    for (const copy of hits) this.pin(copy);
    const removed: bigint[] = [];
    for (let i = 0; i < evictions; i++) removed.push(...this.evict());
    this.reserved += fresh;
    return { reservation: new NaiveReservation(this, hits, fresh), removed: BigUint64Array.from(removed) };
  }

  reserveResidentPrefix(candidates: Hashes, total: number): ReturnType<NaivePool["reserve"]> {
    const hashes = this.hashList(candidates);
    if (hashes.length > checkCount(total)) fail("ARGUMENT_RANGE");
    const resident = this.residentRun(hashes).length;
    return this.reserve(hashes.slice(0, resident), total - resident);
  }

  activatePrefix(reservation: ReservationUnderTest): Float64Array {
    const own = this.own(reservation);
    const prefix = own.prefix;
    own.prefix = [];
    for (const copy of prefix) this.activate(copy);
    return Float64Array.from(prefix, (copy) => copy.id);
  }

  allocatePrivate(reservation: ReservationUnderTest): number {
    const own = this.own(reservation);
    if (own.fresh === 0) fail("RESERVATION_EXHAUSTED");
    own.fresh--;
    this.reserved--;
    const copy: Copy = { id: this.newId(), hash: null, refs: 0, pins: 0 };
    this.copies.set(copy.id, copy);
    return copy.id;
  }

  allocateCached(reservation: ReservationUnderTest, hash: bigint): { id: number; becameVisible: boolean } {
    this.own(reservation);
    checkHash(hash);
    const id = this.allocatePrivate(reservation);
    return { id, becameVisible: this.cachePrivate(id, hash) };
  }

  cachePrivate(id: number, hash: bigint): boolean {
    const copy = this.usable().copies.get(checkId(id));
    checkHash(hash);
    if (copy === undefined) return fail("UNKNOWN_COPY");
    if (copy.hash !== null) fail("ALREADY_CACHED");
    copy.hash = hash;
    copy.refs = 1;
    const chain = this.chains.get(hash) ?? [];
    this.chains.set(hash, [...chain, copy]);
    return chain.length === 0;
  }

  release(id: number): void {
    const copy = this.usable().copies.get(checkId(id)) ?? fail("UNKNOWN_COPY");
    if (copy.hash === null) {
      this.copies.delete(id);
      return;
    }
    if (copy.refs === 0) fail("NOT_REFERENCED");
    copy.refs--;
    this.settle(copy);
  }

  cancel(reservation: ReservationUnderTest): void {
    const own = this.own(reservation);
    if (own.length === 0) return;
    for (const copy of own.prefix.reverse()) this.unpin(copy);
    this.reserved -= own.fresh;
    own.prefix = [];
    own.fresh = 0;
    own.closed = true;
  }

  allocateAllPrivate(reservation: ReservationUnderTest): Float64Array {
    return Float64Array.from({ length: this.own(reservation).fresh }, () => this.allocatePrivate(reservation));
  }

  allocateAllCached(reservation: ReservationUnderTest, hashes: Hashes): { ids: Float64Array; visible: number } {
    const own = this.own(reservation);
    if (hashes.length > own.fresh) fail("RESERVATION_EXHAUSTED");
    const made = this.hashList(hashes).map((hash) => this.allocateCached(reservation, hash));
    return { ids: Float64Array.from(made, ({ id }) => id), visible: made.filter((one) => one.becameVisible).length };
  }

  cacheAll(ids: CopyIds, hashes: Hashes): number {
    const list = this.idList(ids);
    const names = this.hashList(hashes);
    if (list.length !== names.length) fail("ARGUMENT_RANGE");
    list.forEach((id, index) => {
      const copy = this.copies.get(id) ?? fail("UNKNOWN_COPY", index);
      if (copy.hash !== null) fail("ALREADY_CACHED", index);
      if (list.indexOf(id) < index) fail("DUPLICATE_COPY", index);
    });
    return list.filter((id, index) => this.cachePrivate(id, names[index] ?? fail("ARGUMENT_RANGE"))).length;
  }

  releaseAll(ids: CopyIds): void {
    const list = this.idList(ids);
    this.releaseInOrder(list, [...list.keys()]);
  }

  releaseChain(ids: CopyIds): void {
    const list = this.idList(ids);
    this.releaseInOrder(list, [...list.keys()].reverse());
  }

  inactiveIds(): Float64Array {
    return Float64Array.from(this.usable().inactive, (copy) => copy.id);
  }

  dispose(): void {
    this.disposed = true;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  // For tests: what there is to choose from.

  /** The ids that may be released. */
  releasable(): number[] {
    return [...this.copies.values()].filter((copy) => copy.hash === null || copy.refs > 0).map((copy) => copy.id);
  }

  isPrivate(id: number): boolean {
    return this.copies.get(id)?.hash === null;
  }

  residentHashes(): bigint[] {
    return [...this.chains.keys()];
  }

  /** All there is to know of the state, as plain data. */
  snapshot(): unknown {
    const copies = [...this.copies.values()].map((copy) => ({ ...copy }));
    return { copies, inactive: [...this.inactiveIds()], reserved: this.reserved };
  }

  // The rules, one each, so that a deliberately wrong pool can break one of them.

  protected free(): number {
    return this.capacity - this.copies.size - this.reserved;
  }

  protected newId(): number {
    return this.nextId++;
  }

  protected isActive(copy: Copy): boolean {
    return copy.refs > 0 || copy.pins > 0;
  }

  protected oldest(hash: bigint): Copy | undefined {
    return this.chains.get(hash)?.[0];
  }

  protected residentRun(hashes: readonly bigint[]): Copy[] {
    const run: Copy[] = [];
    for (const hash of hashes) {
      const copy = this.oldest(hash);
      if (copy === undefined) break;
      run.push(copy);
    }
    return run;
  }

  /** How many candidates of eviction a prefix hides: each inactive copy once. */
  protected hidden(hits: readonly Copy[]): number {
    return new Set(hits.filter((copy) => this.inactive.has(copy))).size;
  }

  protected pin(copy: Copy): void {
    this.inactive.delete(copy);
    copy.pins++;
  }

  protected activate(copy: Copy): void {
    copy.pins--;
    copy.refs++;
  }

  protected unpin(copy: Copy): void {
    copy.pins--;
    this.settle(copy);
  }

  /** Makes a copy that nobody holds the last candidate of eviction. */
  protected settle(copy: Copy): void {
    if (!this.isActive(copy)) this.inactive.add(copy);
  }

  /** Evicts the first candidate. Returns its hash if this was the last copy of it. */
  protected evict(): bigint[] {
    const [victim] = this.inactive;
    if (victim === undefined || victim.hash === null) throw new Error("There is nothing to evict.");
    this.inactive.delete(victim);
    this.copies.delete(victim.id);
    const rest = this.without(this.chains.get(victim.hash) ?? [], victim);
    if (rest.length > 0) this.chains.set(victim.hash, rest);
    else this.chains.delete(victim.hash);
    return rest.length > 0 ? [] : [victim.hash];
  }

  protected without(chain: readonly Copy[], victim: Copy): Copy[] {
    return chain.filter((copy) => copy !== victim);
  }

  protected releaseInOrder(ids: readonly number[], order: readonly number[]): void {
    const uses = new Map<number, number>();
    for (const index of order) {
      const copy = this.copies.get(ids[index] ?? Number.NaN) ?? fail("UNKNOWN_COPY", index);
      const used = uses.get(copy.id) ?? 0;
      if (copy.hash === null && used > 0) fail("DUPLICATE_COPY", index);
      if (copy.hash !== null && used >= copy.refs) fail("NOT_REFERENCED", index);
      uses.set(copy.id, used + 1);
    }
    for (const index of order) this.release(ids[index] ?? Number.NaN);
  }

  protected hashList(hashes: Hashes): bigint[] {
    return checkHashes(this.usable() && hashes);
  }

  protected idList(ids: CopyIds): number[] {
    return checkIds(this.usable() && ids);
  }

  protected own(reservation: ReservationUnderTest): NaiveReservation {
    this.usable();
    if (!(reservation instanceof NaiveReservation) || reservation.owner !== this) return fail("FOREIGN_RESERVATION");
    if (reservation.closed) fail("RESERVATION_CLOSED");
    return reservation;
  }

  protected usable(): this {
    return this.disposed ? fail("DISPOSED") : this;
  }
}
