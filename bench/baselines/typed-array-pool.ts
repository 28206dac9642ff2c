import type { BlockCopyId, CopyIds, Hashes, SequenceHash } from "../../src/core/keys.js";
import { Outputs } from "./outputs.js";
import type { SlotFields, SlotIndex } from "./slot-index.js";

// The block pool in typed arrays, as fast as JavaScript gets it: the baseline that the WebAssembly core has to beat.
//
// A copy is a slot number, its fields stand in parallel arrays, those that are used together in one:
//
//   #keys        lo, hi: the two halves of the hash
//   #links       refs, pins (private: 1, PRIVATE), or, while the copy is inactive, ~previous, next
//   #generations how often the slot was freed; an id is generation * 2^24 + slot
//   #newer       #older: a ring through the copies of one hash, in order of caching; 0, 0 where there is only one
//   #following   the next free slot; a word of the index while the slot is the oldest copy of its hash
//
// Inactive copies have neither references nor pins, so their links may stand in the same words, and ~previous < 0 says
// that a copy is inactive. Slot 0 is the sentinel of their list.
//
// The oldest copy of each hash stands in the index, which is a class of its own: chained buckets or open addressing.
//
// What was measured, on the life cycle of pool.ts with chained buckets, as time by the time of this layout:
//
//   the 8 words of a slot side by side 1.1; an array for each word 1.05; other pairs and fours of words 1.03 to 1.1
//   touching the places of a batch in the index before using them: 0.97 to 1.06
const SENTINEL = 0;
const PRIVATE = -1;
const SLOTS_MAX = 2 ** 24 - 1;
const SLOT_MASK = 2 ** 24 - 1;
const GENERATION_UNIT = 2 ** 24;
/** 29 bits of generation keep ids below 2^53. */
const GENERATION_MASK = 2 ** 29 - 1;

const NO_SLOTS: number[] = [];
const NO_HASHES = new BigUint64Array(0);

/** Capacity and prefix pins that one request holds until it commits them or gives them back. */
export class TypedArrayReservation {
  /** Null once cancelled. */
  pool: TypedArrayPool | null;
  /** Pinned slots, root to leaf. */
  prefix: number[];
  freshLength: number;

  constructor(pool: TypedArrayPool, prefix: number[], fresh: number) {
    this.pool = pool;
    this.prefix = prefix;
    this.freshLength = fresh;
  }

  get length(): number {
    return this.prefix.length + this.freshLength;
  }
}

/** The block pool in typed arrays. Answers as `BlockPool` does. */
export class TypedArrayPool {
  readonly capacity: number;
  readonly #keys: Int32Array;
  readonly #links: Int32Array;
  readonly #generations: Int32Array;
  readonly #newer: Int32Array;
  readonly #older: Int32Array;
  readonly #following: Int32Array;
  readonly #index: SlotIndex;
  readonly #outputs = new Outputs();
  #input = new BigUint64Array(64);
  #inputWords = new Int32Array(this.#input.buffer);
  #one = new BigUint64Array(1);
  /** The first free slot, or 0. */
  #free = 1;
  #copies = 0;
  #refs = 0;
  #inactive = 0;
  #reserved = 0;

  constructor(options: { capacity: number }, Index: new (fields: SlotFields) => SlotIndex) {
    const { capacity } = options;
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > SLOTS_MAX) {
      throw new RangeError(`Expected a capacity from 1 to ${SLOTS_MAX} blocks, got ${capacity}.`);
    }
    this.capacity = capacity;
    this.#keys = new Int32Array((capacity + 1) * 2);
    this.#links = new Int32Array((capacity + 1) * 2);
    this.#generations = new Int32Array(capacity + 1);
    this.#newer = new Int32Array(capacity + 1);
    this.#older = new Int32Array(capacity + 1);
    this.#following = new Int32Array(capacity + 1);
    this.#index = new Index({ capacity, keys: this.#keys, following: this.#following });
    this.#links[0] = ~SENTINEL;
    this.#links[1] = SENTINEL;
    for (let slot = 1; slot < capacity; slot++) this.#following[slot] = slot + 1;
  }

  get numActive(): number {
    return this.#copies - this.#inactive + this.#reserved;
  }

  get numActiveRefs(): number {
    return this.#refs;
  }

  get numInactive(): number {
    return this.#inactive;
  }

  prefixHit(hash: SequenceHash): { isActive: boolean } | null {
    this.#one[0] = hash;
    const { resident, active } = this.matchPrefix(this.#one);
    return resident === 0 ? null : { isActive: active === 1 };
  }

  matchPrefix(hashes: Hashes): { resident: number; active: number } {
    const words = this.#load(hashes);
    const links = this.#links;
    const index = this.#index;
    const end = hashes.length << 1;
    let active = 0;
    let i = 0;
    for (; i < end; i += 2) {
      const slot = index.find(words[i] as number, words[i + 1] as number);
      if (slot === 0) break;
      if ((links[slot << 1] as number) >= 0) active++;
    }
    return { resident: i >> 1, active };
  }

  reserve(prefix: Hashes, fresh: number): { reservation: TypedArrayReservation; removed: BigUint64Array } | null {
    const pinned = prefix.length === 0 ? NO_SLOTS : this.#findAll(prefix);
    const evictions = fresh - (this.capacity - this.#copies - this.#reserved);
    // Almost always there is room even if the whole prefix is inactive: then nobody counts its distinct copies.
    if (evictions > 0 && evictions > this.#inactive - pinned.length && evictions > this.#evictableWithout(pinned)) {
      return null;
    }
    if (pinned.length > 0) this.#pinAll(pinned);
    const removed = evictions > 0 ? this.#evict(evictions) : NO_HASHES;
    this.#reserved += fresh;
    return { reservation: new TypedArrayReservation(this, pinned, fresh), removed };
  }

  activatePrefix(reservation: TypedArrayReservation): Float64Array {
    this.#check(reservation, 0);
    const prefix = reservation.prefix;
    const links = this.#links;
    const generations = this.#generations;
    const start = this.#outputs.open(prefix.length);
    const ids = this.#outputs.doubles;
    for (let i = 0; i < prefix.length; i++) {
      const slot = prefix[i] as number;
      (links[(slot << 1) + 1] as number)--;
      (links[slot << 1] as number)++;
      ids[start + i] = (generations[slot] as number) * GENERATION_UNIT + slot;
    }
    this.#refs += prefix.length;
    reservation.prefix = NO_SLOTS;
    return this.#outputs.takeDoubles(start, prefix.length);
  }

  allocatePrivate(reservation: TypedArrayReservation): BlockCopyId {
    this.#check(reservation, 1);
    const slot = this.#free;
    this.#free = this.#following[slot] as number;
    this.#links[slot << 1] = 1;
    this.#links[(slot << 1) + 1] = PRIVATE;
    this.#commit(reservation, 1);
    return (this.#generations[slot] as number) * GENERATION_UNIT + slot;
  }

  allocateCached(reservation: TypedArrayReservation, hash: SequenceHash): { id: BlockCopyId; becameVisible: boolean } {
    this.#one[0] = hash;
    const { ids, visible } = this.allocateAllCached(reservation, this.#one);
    return { id: ids[0] as number, becameVisible: visible === 1 };
  }

  allocateAllCached(reservation: TypedArrayReservation, hashes: Hashes): { ids: Float64Array; visible: number } {
    const length = hashes.length;
    this.#check(reservation, length);
    const words = this.#load(hashes);
    const keys = this.#keys;
    const links = this.#links;
    const generations = this.#generations;
    const following = this.#following;
    const index = this.#index;
    const start = this.#outputs.open(length);
    const ids = this.#outputs.doubles;
    let free = this.#free;
    let visible = 0;
    for (let i = 0; i < length; i++) {
      const lo = words[i << 1] as number;
      const hi = words[(i << 1) + 1] as number;
      const slot = free;
      free = following[slot] as number;
      keys[slot << 1] = lo;
      keys[(slot << 1) + 1] = hi;
      links[slot << 1] = 1;
      links[(slot << 1) + 1] = 0;
      const oldest = index.add(slot, lo, hi);
      if (oldest === 0) visible++;
      else this.#append(slot, oldest);
      ids[start + i] = (generations[slot] as number) * GENERATION_UNIT + slot;
    }
    this.#free = free;
    this.#commit(reservation, length);
    return { ids: this.#outputs.takeDoubles(start, length), visible };
  }

  cachePrivate(id: BlockCopyId, hash: SequenceHash): boolean {
    const slot = this.#slotOf(id);
    if (slot === 0) throw new RangeError(`Expected a copy of this pool, got ${id}.`);
    if (this.#links[(slot << 1) + 1] !== PRIVATE)
      throw new RangeError(`Expected ${id} to be private, but it is cached.`);
    this.#one[0] = hash;
    const words = this.#load(this.#one);
    const lo = words[0] as number;
    const hi = words[1] as number;
    this.#keys[slot << 1] = lo;
    this.#keys[(slot << 1) + 1] = hi;
    this.#links[(slot << 1) + 1] = 0;
    const oldest = this.#index.add(slot, lo, hi);
    if (oldest !== 0) this.#append(slot, oldest);
    return oldest === 0;
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

  cancel(reservation: TypedArrayReservation): void {
    if (reservation.length === 0) return;
    this.#check(reservation, 0);
    const prefix = reservation.prefix;
    const links = this.#links;
    let last = ~(links[0] as number);
    let linked = 0;
    for (let i = prefix.length - 1; i >= 0; i--) {
      const slot = prefix[i] as number;
      const pins = (links[(slot << 1) + 1] as number) - 1;
      links[(slot << 1) + 1] = pins;
      if (pins === 0 && links[slot << 1] === 0) {
        links[slot << 1] = ~last;
        links[(last << 1) + 1] = slot;
        last = slot;
        linked++;
      }
    }
    this.#close(last, linked);
    this.#reserved -= reservation.freshLength;
    reservation.pool = null;
    reservation.prefix = NO_SLOTS;
    reservation.freshLength = 0;
  }

  inactiveIds(): Float64Array {
    const ids = new Float64Array(this.#inactive);
    let slot = this.#links[1] as number;
    for (let i = 0; i < ids.length; i++) {
      ids[i] = (this.#generations[slot] as number) * GENERATION_UNIT + slot;
      slot = this.#links[(slot << 1) + 1] as number;
    }
    return ids;
  }

  /** Copies the hashes to a scratch page and returns it as words: 16 ns, a view on the caller's buffer takes 35. */
  #load(hashes: Hashes): Int32Array {
    const length = hashes.length;
    if (length > this.#input.length) {
      this.#input = new BigUint64Array(2 ** Math.ceil(Math.log2(length)));
      this.#inputWords = new Int32Array(this.#input.buffer);
    }
    if (length === 1) this.#input[0] = hashes[0] as bigint;
    else this.#input.set(hashes);
    return this.#inputWords;
  }

  /** The slots that a prefix resolves to, the oldest copy of each hash. Throws at the first that is missing. */
  #findAll(prefix: Hashes): number[] {
    const words = this.#load(prefix);
    const index = this.#index;
    const found = new Array<number>(prefix.length);
    for (let i = 0; i < found.length; i++) {
      const slot = index.find(words[i << 1] as number, words[(i << 1) + 1] as number);
      if (slot === 0) throw new RangeError(`Expected resident hashes, but ${prefix[i]} at index ${i} is not resident.`);
      found[i] = slot;
    }
    return found;
  }

  /** How many copies may be evicted once those of `pinned` are pinned. */
  #evictableWithout(pinned: number[]): number {
    let evictable = this.#inactive;
    for (const slot of new Set(pinned)) {
      if ((this.#links[slot << 1] as number) < 0) evictable--;
    }
    return evictable;
  }

  #pinAll(pinned: number[]): void {
    const links = this.#links;
    let unlinked = 0;
    for (let i = 0; i < pinned.length; i++) {
      const slot = pinned[i] as number;
      const refs = links[slot << 1] as number;
      const pins = links[(slot << 1) + 1] as number;
      if (refs >= 0) {
        links[(slot << 1) + 1] = pins + 1;
        continue;
      }
      links[(~refs << 1) + 1] = pins;
      links[pins << 1] = refs;
      links[slot << 1] = 0;
      links[(slot << 1) + 1] = 1;
      unlinked++;
    }
    this.#inactive -= unlinked;
  }

  /** Evicts from the front of the inactive list and returns the hashes that lost their last copy. */
  #evict(count: number): BigUint64Array {
    const keys = this.#keys;
    const links = this.#links;
    const generations = this.#generations;
    const newer = this.#newer;
    const following = this.#following;
    const index = this.#index;
    const start = this.#outputs.open(count);
    const removed = this.#outputs.words;
    let end = start << 1;
    let slot = links[1] as number;
    let free = this.#free;
    for (let i = 0; i < count; i++) {
      const lo = keys[slot << 1] as number;
      const hi = keys[(slot << 1) + 1] as number;
      if (newer[slot] === 0) {
        index.remove(slot, lo, hi);
        removed[end] = lo;
        removed[end + 1] = hi;
        end += 2;
      } else {
        this.#dropCopy(slot, lo, hi);
      }
      generations[slot] = ((generations[slot] as number) + 1) & GENERATION_MASK;
      following[slot] = free;
      free = slot;
      slot = links[(slot << 1) + 1] as number;
    }
    links[1] = slot;
    links[slot << 1] = ~SENTINEL;
    this.#free = free;
    this.#inactive -= count;
    this.#copies -= count;
    return this.#outputs.takeBigints(start, (end >> 1) - start);
  }

  /** Makes a copy the youngest of its hash. */
  #append(slot: number, oldest: number): void {
    const newer = this.#newer;
    const older = this.#older;
    const youngest = (older[oldest] as number) || oldest;
    older[slot] = youngest;
    newer[slot] = oldest;
    newer[youngest] = slot;
    older[oldest] = slot;
  }

  /** Takes one of several copies of a hash out of their ring; if it was the oldest, the next takes its place. */
  #dropCopy(slot: number, lo: number, hi: number): void {
    const next = this.#newer[slot] as number;
    const previous = this.#older[slot] as number;
    const single = next === previous; // two copies were there: the one that is left has no ring
    this.#older[next] = single ? 0 : previous;
    this.#newer[previous] = single ? 0 : next;
    this.#newer[slot] = 0;
    this.#older[slot] = 0;
    this.#index.replace(slot, next, lo, hi);
  }

  /** Releases one reference of each id in the order given, or none: what was done is undone at the first bad id. */
  #release(ids: CopyIds, from: number, step: number): void {
    const links = this.#links;
    const generations = this.#generations;
    let last = ~(links[0] as number);
    let linked = 0;
    for (let n = 0, i = from; n < ids.length; n++, i += step) {
      const id = ids[i] as number;
      const slot = id & SLOT_MASK;
      const refs = links[slot << 1] as number;
      const pins = links[(slot << 1) + 1] as number;
      // Beyond the last slot the generation is undefined, and NaN is no id.
      if ((generations[slot] as number) * GENERATION_UNIT + slot !== id || refs <= 0) {
        this.#close(last, linked);
        this.#undo(ids, i, step, n);
      }
      if (refs > 1) {
        links[slot << 1] = refs - 1;
      } else if (pins === 0) {
        links[slot << 1] = ~last;
        links[(last << 1) + 1] = slot;
        last = slot;
        linked++;
      } else if (pins > 0) {
        links[slot << 1] = 0;
      } else {
        this.#freePrivate(slot);
      }
    }
    this.#close(last, linked);
    this.#refs -= ids.length;
  }

  /** Makes `last`, which was linked to its predecessors already, the end of the inactive list. */
  #close(last: number, linked: number): void {
    this.#links[(last << 1) + 1] = SENTINEL;
    this.#links[0] = ~last;
    this.#inactive += linked;
  }

  #freePrivate(slot: number): void {
    this.#generations[slot] = ((this.#generations[slot] as number) + 1) & GENERATION_MASK;
    this.#links[slot << 1] = 0;
    this.#links[(slot << 1) + 1] = 0;
    this.#following[slot] = this.#free;
    this.#free = slot;
    this.#copies--;
  }

  /** Takes `count` releases back, the latest first, and says which id was bad. */
  #undo(ids: CopyIds, bad: number, step: number, count: number): never {
    for (let n = 0, i = bad - step; n < count; n++, i -= step) this.#retain(ids[i] as number);
    throw new RangeError(`Expected references to copies of this pool, but ${ids[bad]} at index ${bad} has none.`);
  }

  /** Undoes the latest release of an id, which must be the latest change of the pool. */
  #retain(id: BlockCopyId): void {
    const links = this.#links;
    const generations = this.#generations;
    const following = this.#following;
    const slot = id & SLOT_MASK;
    if ((generations[slot] as number) * GENERATION_UNIT + slot !== id) {
      this.#free = following[slot] as number;
      this.#copies++;
      generations[slot] = Math.floor(id / GENERATION_UNIT);
      links[slot << 1] = 1;
      links[(slot << 1) + 1] = PRIVATE;
    } else if ((links[slot << 1] as number) < 0) {
      this.#close(~(links[slot << 1] as number), -1);
      links[slot << 1] = 1;
      links[(slot << 1) + 1] = 0;
    } else {
      (links[slot << 1] as number)++;
    }
  }

  /** Refuses a reservation of another pool, a cancelled one, and one with fewer than `fresh` blocks left. */
  #check(reservation: TypedArrayReservation, fresh: number): void {
    if (reservation.pool !== this) throw new RangeError("Expected an open reservation of this pool, got another.");
    if (fresh > reservation.freshLength) {
      throw new RangeError(`Expected at most ${reservation.freshLength} fresh blocks, got ${fresh}.`);
    }
  }

  #commit(reservation: TypedArrayReservation, count: number): void {
    reservation.freshLength -= count;
    this.#reserved -= count;
    this.#copies += count;
    this.#refs += count;
  }

  /** The slot of a copy that lives, or 0. */
  #slotOf(id: BlockCopyId): number {
    const slot = id & SLOT_MASK;
    const known = (this.#generations[slot] as number) * GENERATION_UNIT + slot === id;
    return known && this.#links[slot << 1] !== 0 ? slot : 0;
  }
}
