import type { BlockCopyId, CopyIds, Hashes, SequenceHash } from "../../src/core/keys.js";
import { Outputs } from "./outputs.js";

/** One physical copy of a block. Private while `hash` is null. */
interface Copy {
  readonly id: BlockCopyId;
  hash: SequenceHash | null;
  refs: number;
  pins: number;
  previous: Copy | null;
  next: Copy | null;
}

/** Capacity and prefix pins that one request holds until it commits them or gives them back. */
export class MapReservation {
  /** Null once cancelled. */
  pool: MapPool | null;
  /** Pinned copies, root to leaf. */
  prefix: Copy[];
  freshLength: number;

  constructor(pool: MapPool, prefix: Copy[], fresh: number) {
    this.pool = pool;
    this.prefix = prefix;
    this.freshLength = fresh;
  }

  get length(): number {
    return this.prefix.length + this.freshLength;
  }
}

/**
 * The block pool as one writes it first in JavaScript: two maps, an object for each copy, a linked list of objects.
 * Answers as `BlockPool` does; ids count up and are never reused, so that a stale one is simply not in the map.
 */
export class MapPool {
  readonly capacity: number;
  readonly #copies = new Map<BlockCopyId, Copy>();
  /** The resident copies of each hash, oldest first. */
  readonly #byHash = new Map<SequenceHash, Copy[]>();
  readonly #outputs = new Outputs();
  /** The inactive copies: the oldest is evicted next, the newest became inactive last. */
  #oldest: Copy | null = null;
  #newest: Copy | null = null;
  #inactive = 0;
  #refs = 0;
  #reserved = 0;
  #nextId = 0;

  constructor(options: { capacity: number }) {
    const { capacity } = options;
    if (!Number.isInteger(capacity) || capacity < 1) {
      throw new RangeError(`Expected a capacity of at least 1 block, got ${capacity}.`);
    }
    this.capacity = capacity;
  }

  get numActive(): number {
    return this.#copies.size - this.#inactive + this.#reserved;
  }

  get numActiveRefs(): number {
    return this.#refs;
  }

  get numInactive(): number {
    return this.#inactive;
  }

  prefixHit(hash: SequenceHash): { isActive: boolean } | null {
    const copy = this.#byHash.get(hash)?.[0];
    return copy === undefined ? null : { isActive: !isInactive(copy) };
  }

  matchPrefix(hashes: Hashes): { resident: number; active: number } {
    let resident = 0;
    let active = 0;
    for (; resident < hashes.length; resident++) {
      const copy = this.#byHash.get(hashes[resident] as bigint)?.[0];
      if (copy === undefined) break;
      if (!isInactive(copy)) active++;
    }
    return { resident, active };
  }

  reserve(prefix: Hashes, fresh: number): { reservation: MapReservation; removed: BigUint64Array } | null {
    const pinned = this.#findAll(prefix);
    const evictions = Math.max(0, fresh - (this.capacity - this.#copies.size - this.#reserved));
    if (evictions > 0 && evictions > this.#inactive - countInactive(pinned)) return null;
    for (const copy of pinned) this.#pin(copy);
    const removed = this.#evict(evictions);
    this.#reserved += fresh;
    return { reservation: new MapReservation(this, pinned, fresh), removed };
  }

  activatePrefix(reservation: MapReservation): Float64Array {
    this.#check(reservation, 0);
    const prefix = reservation.prefix;
    const start = this.#outputs.open(prefix.length);
    const ids = this.#outputs.doubles;
    for (let i = 0; i < prefix.length; i++) {
      const copy = prefix[i] as Copy;
      copy.pins--;
      copy.refs++;
      ids[start + i] = copy.id;
    }
    this.#refs += prefix.length;
    reservation.prefix = [];
    return this.#outputs.takeDoubles(start, prefix.length);
  }

  allocatePrivate(reservation: MapReservation): BlockCopyId {
    this.#check(reservation, 1);
    return this.#allocate(reservation).id;
  }

  allocateCached(reservation: MapReservation, hash: SequenceHash): { id: BlockCopyId; becameVisible: boolean } {
    this.#check(reservation, 1);
    const copy = this.#allocate(reservation);
    return { id: copy.id, becameVisible: this.#cache(copy, hash) };
  }

  allocateAllCached(reservation: MapReservation, hashes: Hashes): { ids: Float64Array; visible: number } {
    this.#check(reservation, hashes.length);
    const start = this.#outputs.open(hashes.length);
    const ids = this.#outputs.doubles;
    let visible = 0;
    for (let i = 0; i < hashes.length; i++) {
      const copy = this.#allocate(reservation);
      if (this.#cache(copy, hashes[i] as bigint)) visible++;
      ids[start + i] = copy.id;
    }
    return { ids: this.#outputs.takeDoubles(start, hashes.length), visible };
  }

  cachePrivate(id: BlockCopyId, hash: SequenceHash): boolean {
    const copy = this.#copies.get(id);
    if (copy === undefined) throw new RangeError(`Expected a copy of this pool, got ${id}.`);
    if (copy.hash !== null) throw new RangeError(`Expected a private copy, got ${id}, a cached one.`);
    return this.#cache(copy, hash);
  }

  release(id: BlockCopyId): void {
    this.releaseAll([id]);
  }

  releaseAll(ids: CopyIds): void {
    this.#release(ids, 0, 1);
  }

  releaseChain(ids: CopyIds): void {
    this.#release(ids, ids.length - 1, -1);
  }

  cancel(reservation: MapReservation): void {
    if (reservation.length === 0) return;
    this.#check(reservation, 0);
    for (let i = reservation.prefix.length - 1; i >= 0; i--) {
      const copy = reservation.prefix[i] as Copy;
      copy.pins--;
      if (isInactive(copy)) this.#link(copy);
    }
    this.#reserved -= reservation.freshLength;
    reservation.pool = null;
    reservation.prefix = [];
    reservation.freshLength = 0;
  }

  inactiveIds(): Float64Array {
    const ids: number[] = [];
    for (let copy = this.#oldest; copy !== null; copy = copy.next) ids.push(copy.id);
    return Float64Array.from(ids);
  }

  #findAll(prefix: Hashes): Copy[] {
    const found: Copy[] = [];
    for (let i = 0; i < prefix.length; i++) {
      const copy = this.#byHash.get(prefix[i] as bigint)?.[0];
      if (copy === undefined) throw new RangeError(`Expected resident hashes, but ${prefix[i]} is not resident.`);
      found.push(copy);
    }
    return found;
  }

  #allocate(reservation: MapReservation): Copy {
    const copy: Copy = { id: this.#nextId++, hash: null, refs: 1, pins: 0, previous: null, next: null };
    reservation.freshLength--;
    this.#reserved--;
    this.#refs++;
    this.#copies.set(copy.id, copy);
    return copy;
  }

  #cache(copy: Copy, hash: SequenceHash): boolean {
    copy.hash = hash;
    const copies = this.#byHash.get(hash);
    if (copies === undefined) this.#byHash.set(hash, [copy]);
    else copies.push(copy);
    return copies === undefined;
  }

  #pin(copy: Copy): void {
    if (isInactive(copy)) this.#unlink(copy);
    copy.pins++;
  }

  /** Evicts from the front of the inactive list and returns the hashes that lost their last copy. */
  #evict(count: number): BigUint64Array {
    const start = this.#outputs.open(count);
    const removed = this.#outputs.bigints;
    let length = 0;
    for (let i = 0; i < count; i++) {
      const copy = this.#oldest as Copy;
      const hash = copy.hash as SequenceHash;
      this.#unlink(copy);
      this.#copies.delete(copy.id);
      const copies = this.#byHash.get(hash) as Copy[];
      if (copies.length > 1) {
        copies.splice(copies.indexOf(copy), 1);
      } else {
        this.#byHash.delete(hash);
        removed[start + length++] = hash;
      }
    }
    return this.#outputs.takeBigints(start, length);
  }

  /** Releases one reference of each id in the order given; checks all of them before it changes any. */
  #release(ids: CopyIds, from: number, step: number): void {
    const copies = this.#findReferenced(ids);
    for (let n = 0, i = from; n < copies.length; n++, i += step) {
      const copy = copies[i] as Copy;
      copy.refs--;
      if (copy.hash === null) this.#copies.delete(copy.id);
      else if (isInactive(copy)) this.#link(copy);
    }
    this.#refs -= ids.length;
  }

  /** The copies that ids name. Throws if one is unknown, or named more often than it is referenced. */
  #findReferenced(ids: CopyIds): Copy[] {
    const found: Copy[] = [];
    for (let i = 0; i < ids.length; i++) {
      const copy = this.#copies.get(ids[i] as number);
      if (copy === undefined || copy.refs === 0) break;
      copy.refs--; // so that the second release of a last reference is seen
      found.push(copy);
    }
    for (const copy of found) copy.refs++;
    if (found.length === ids.length) return found;
    const bad = found.length;
    throw new RangeError(`Expected references to copies of this pool, but ${ids[bad]} at index ${bad} has none.`);
  }

  #link(copy: Copy): void {
    copy.previous = this.#newest;
    if (this.#newest === null) this.#oldest = copy;
    else this.#newest.next = copy;
    this.#newest = copy;
    this.#inactive++;
  }

  #unlink(copy: Copy): void {
    if (copy.previous === null) this.#oldest = copy.next;
    else copy.previous.next = copy.next;
    if (copy.next === null) this.#newest = copy.previous;
    else copy.next.previous = copy.previous;
    copy.previous = null;
    copy.next = null;
    this.#inactive--;
  }

  #check(reservation: MapReservation, fresh: number): void {
    if (reservation.pool !== this) throw new RangeError("Expected an open reservation of this pool, got another.");
    if (fresh > reservation.freshLength) {
      throw new RangeError(`Expected at most ${reservation.freshLength} fresh blocks, got ${fresh}.`);
    }
  }
}

/** Whether nobody references or pins a cached copy, so that it may be evicted. */
function isInactive(copy: Copy): boolean {
  return copy.refs === 0 && copy.pins === 0;
}

/** How many distinct copies of a list are inactive. */
function countInactive(copies: readonly Copy[]): number {
  return new Set(copies.filter(isInactive)).size;
}
