import { CAPACITY_MAX, GENERATION_BITS, REFERENCES_MAX, SLOT_BITS, Status } from "../abi.js";
import {
  AlreadyCachedError,
  ArgumentRangeError,
  ArgumentTypeError,
  CapacityError,
  DuplicateCopyError,
  IdsExhaustedError,
  type KvrouteError,
  MissingPrefixError,
  NotReferencedError,
  ReferencesExhaustedError,
  UnknownCopyError,
} from "../errors.js";
import { describe } from "./describe.js";
import { DISPOSE } from "./dispose.js";
import { CoreInstance, lengthOf } from "./instance.js";
import type { BlockCopyId, CopyIds, Hashes, SequenceHash } from "./keys.js";
import { CoreOwner } from "./owner.js";
import { type BlockReservation, Reservation, type ReservingPool } from "./reservation.js";

/** How a pool is made. */
export interface BlockPoolOptions {
  /** Blocks that the pool models: 1 to 16,777,215. */
  readonly capacity: number;
  /** Memory that the core may take, in bytes; at least 65,536. By default what WebAssembly can address, 4 GiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** The compiled core, for hosts that refuse to compile synchronously; see `compileCore`. */
  readonly module?: WebAssembly.Module | undefined;
}

/** What a reservation got. */
export interface ReserveOutcome {
  readonly reservation: BlockReservation;
  /** Hashes that lost their last copy to the reservation, in order of eviction. */
  readonly removed: BigUint64Array;
}

/** A number of blocks beyond what the core counts in is refused by it for want of room, like any that is too large. */
const COUNT_MAX = 2_147_483_647;

/** The core behind a pool, for tests that look inside. Not part of the package's entry. */
export let coreOf: (pool: BlockPool) => CoreInstance;

/**
 * Models the KV cache of one engine in physical blocks, as vLLM keeps it: private and cached copies, references, prefix
 * pins, and eviction of the least recently used copy that nobody holds.
 */
export class BlockPool implements ReservingPool {
  static {
    coreOf = (pool) => pool.#owner.open();
  }

  readonly capacity: number;
  readonly #owner: CoreOwner;

  /**
   * Makes an empty pool.
   *
   * @throws {CapacityError} `KVROUTE_CAPACITY` if the capacity is not a whole number from 1 to 16,777,215
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the smallest pool does not fit
   */
  constructor(options: BlockPoolOptions) {
    this.capacity = checkCapacity(options.capacity);
    const core = new CoreInstance(options);
    const status = -core.exports.create(this.capacity, core.pagesMax);
    if (status !== Status.Ok) throw core.memoryError();
    core.exports.seal(nextSeal());
    core.refresh();
    this.#owner = new CoreOwner(core, "pool");
  }

  /** Counts the blocks in use: copies that somebody holds or has pinned, and room that is reserved. */
  get numActive(): number {
    return this.#owner.open().exports.numActive();
  }

  /** Counts the references: one for each private copy, and one for each holder of a cached copy. Pins are none. */
  get numActiveRefs(): number {
    return this.#owner.open().exports.numReferences();
  }

  /** Counts the cached copies that nobody holds and that may be evicted. */
  get numInactive(): number {
    return this.#owner.open().exports.numInactive();
  }

  /** Counts the bytes of memory that the core takes. */
  get memoryBytes(): number {
    return this.#owner.open().exports.memory.buffer.byteLength;
  }

  /** Looks a hash up: `null` if no copy is resident, else whether somebody holds the oldest resident copy. */
  prefixHit(hash: SequenceHash): { isActive: boolean } | null {
    const core = this.#owner.open();
    core.putHash(hash, 0, "hash");
    const { resident, active } = this.#match(core, 1);
    return resident === 0 ? null : { isActive: active > 0 };
  }

  /** Counts the leading hashes that are resident, and how many of those somebody holds. */
  matchPrefix(hashes: Hashes): { resident: number; active: number } {
    const core = this.#owner.open();
    core.putHashes(hashes, 0, "hashes");
    return this.#match(core, hashes.length);
  }

  /**
   * Pins the resident copies of `prefix` and sets room for `fresh` more blocks aside, or changes nothing.
   *
   * @param prefix sequence hashes from root to leaf, every one of them resident
   * @param fresh blocks to set aside beyond the prefix, 0 or more
   * @returns the reservation and the hashes that lost their last copy to it, or `null` when there is no room
   * @throws {MissingPrefixError} `KVROUTE_MISSING_PREFIX` if a hash is not resident (checked before room is)
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow
   */
  reserve(prefix: Hashes, fresh: number): ReserveOutcome | null {
    const core = this.#owner.open();
    const count = checkCount(fresh, "fresh");
    core.putHashes(prefix, 0, "prefix");
    let removed: number;
    try {
      removed = core.exports.reserve(prefix.length, count);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (removed < 0) return this.#refused(core, -removed, prefix, count);
    return this.#outcome(core, prefix.length, count, removed);
  }

  /**
   * Pins the longest resident run at the head of `candidates` and sets room for the rest of `total` blocks aside, or
   * changes nothing.
   *
   * @param candidates sequence hashes from root to leaf, at most `total`
   * @param total blocks that the request needs, pinned ones included
   * @returns the reservation and the hashes that lost their last copy to it, or `null` when there is no room
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow
   */
  reserveResidentPrefix(candidates: Hashes, total: number): ReserveOutcome | null {
    const core = this.#owner.open();
    const count = checkCount(total, "total");
    if (lengthOf(candidates, "candidates") > count) {
      throw new ArgumentRangeError(`Expected at most ${total} candidates, the total, got ${candidates.length}.`);
    }
    core.putHashes(candidates, 0, "candidates");
    let removed: number;
    try {
      removed = core.exports.reserveResident(candidates.length, count);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (removed < 0) return this.#refused(core, -removed, candidates, count);
    const resident = core.exports.detail();
    return this.#outcome(core, resident, count - resident, removed);
  }

  /** Turns the pins of a reservation into references. Returns the ids head to tail; the second time there are none. */
  activatePrefix(reservation: BlockReservation): Float64Array {
    const core = this.#owner.open();
    const pins = Reservation.takePinned(Reservation.of(reservation, this));
    core.putPins(pins);
    try {
      core.exports.activate(pins.length);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    return core.takeIds(pins.length);
  }

  /**
   * Allocates a private copy from the fresh part of a reservation.
   *
   * @throws {ReservationExhaustedError} `KVROUTE_RESERVATION_EXHAUSTED` if the fresh part is used up
   */
  allocatePrivate(reservation: BlockReservation): BlockCopyId {
    const core = this.#owner.open();
    this.#allocatePrivate(core, Reservation.of(reservation, this), 1);
    return core.ids[0] as number;
  }

  /** Allocates private copies from all that is left of the fresh part of a reservation. */
  allocateAllPrivate(reservation: BlockReservation): Float64Array {
    const core = this.#owner.open();
    const own = Reservation.of(reservation, this);
    const count = own.freshLength;
    core.ensure(count);
    this.#allocatePrivate(core, own, count);
    return core.takeIds(count);
  }

  /**
   * Allocates a copy for a block that arrives complete, by transfer, and caches it at once.
   *
   * @returns its id, and whether it is the first resident copy of the hash
   * @throws {ReservationExhaustedError} `KVROUTE_RESERVATION_EXHAUSTED` if the fresh part is used up
   */
  allocateCached(reservation: BlockReservation, hash: SequenceHash): { id: BlockCopyId; becameVisible: boolean } {
    const core = this.#owner.open();
    const own = Reservation.of(reservation, this);
    core.putHash(hash, 1, "hash");
    const visible = this.#allocateCached(core, own, 1);
    return { id: core.ids[0] as number, becameVisible: visible > 0 };
  }

  /** Allocates a cached copy for each hash, all or none. Returns their ids and how many hashes became visible. */
  allocateAllCached(reservation: BlockReservation, hashes: Hashes): { ids: Float64Array; visible: number } {
    const core = this.#owner.open();
    const own = Reservation.of(reservation, this);
    const count = lengthOf(hashes, "hashes");
    Reservation.checkFresh(own, count);
    core.putHashes(hashes, count, "hashes");
    const visible = this.#allocateCached(core, own, count);
    return { ids: core.takeIds(count), visible };
  }

  /**
   * Lets a private copy, now computed, answer to a hash.
   *
   * @returns whether it is the first resident copy of the hash
   * @throws {UnknownCopyError} `KVROUTE_UNKNOWN_COPY` if no live copy answers to the id
   * @throws {AlreadyCachedError} `KVROUTE_ALREADY_CACHED` if the copy is cached
   */
  cachePrivate(id: BlockCopyId, hash: SequenceHash): boolean {
    const core = this.#owner.open();
    core.putId(id);
    core.putHash(hash, 1, "hash");
    return this.#cache(core, [id]) > 0;
  }

  /** Caches private copies, all or none: the hash for an id stands at its index. Returns how many became visible. */
  cacheAll(ids: CopyIds, hashes: Hashes): number {
    const core = this.#owner.open();
    if (lengthOf(ids, "ids") !== lengthOf(hashes, "hashes")) {
      throw new ArgumentRangeError(
        `Expected as many hashes as ids, got ${hashes.length} hashes for ${ids.length} ids.`,
      );
    }
    core.putHashes(hashes, ids.length, "hashes");
    core.putIds(ids);
    return this.#cache(core, ids);
  }

  /**
   * Drops a reference of a copy: a private copy goes, a cached one that nobody holds may be evicted from now on.
   *
   * @throws {UnknownCopyError} `KVROUTE_UNKNOWN_COPY` if no live copy answers to the id
   * @throws {NotReferencedError} `KVROUTE_NOT_REFERENCED` if the copy has no reference left
   */
  release(id: BlockCopyId): void {
    const core = this.#owner.open();
    core.putId(id);
    this.#release(core, [id], 0);
  }

  /** Drops a reference of each copy, all or none, in the order of eviction: leaf first. */
  releaseAll(ids: CopyIds): void {
    const core = this.#owner.open();
    core.putIds(ids);
    this.#release(core, ids, 0);
  }

  /** Drops a reference of each copy of a chain, all or none: ids head to tail, released backwards. */
  releaseChain(ids: CopyIds): void {
    const core = this.#owner.open();
    core.putIds(ids);
    this.#release(core, ids, 1);
  }

  /** Gives back what a reservation has not used, pins from leaf to root. Does nothing when nothing is left. */
  cancel(reservation: BlockReservation): void {
    const core = this.#owner.open();
    const own = Reservation.of(reservation, this);
    if (own.length === 0) return;
    const pinned = Reservation.pinned(own);
    core.putPins(pinned);
    try {
      core.exports.cancel(pinned.length, own.freshLength);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    Reservation.close(own);
  }

  /** Lists the inactive copies, next victim first. For tests and tools: it walks the whole list. */
  inactiveIds(): Float64Array {
    const core = this.#owner.open();
    const all = new Float64Array(core.exports.numInactive());
    for (let filled = 0; filled < all.length; ) {
      const last = filled === 0 ? 0 : (all[filled - 1] as number);
      const most = Math.min(core.ids.length, all.length - filled);
      const count = this.#owner.run(() => core.exports.listInactive(last, most));
      all.set(core.ids.subarray(0, count), filled);
      filled += count;
    }
    return all;
  }

  /** Lets go of the memory; afterwards every call but this one throws `KVROUTE_DISPOSED`. */
  dispose(): void {
    this.#owner.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }

  #match(core: CoreInstance, length: number): { resident: number; active: number } {
    try {
      const resident = core.exports.match(length);
      return { resident, active: core.exports.detail() };
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
  }

  #outcome(core: CoreInstance, pinned: number, fresh: number, removed: number): ReserveOutcome {
    core.refresh();
    return {
      reservation: new Reservation(this, core.takePins(pinned), fresh),
      removed: core.takeHashes(pinned, removed),
    };
  }

  #refused(core: CoreInstance, status: number, prefix: Hashes, fresh: number): null {
    switch (status) {
      case Status.NoRoom:
        return null;
      case Status.MissingPrefix: {
        const index = core.exports.detail();
        throw new MissingPrefixError(prefix[index] as bigint, index);
      }
      case Status.ReferencesExhausted:
        throw new ReferencesExhaustedError(REFERENCES_MAX, prefix.length + fresh);
      case Status.IdsExhausted:
        throw new IdsExhaustedError(2 ** SLOT_BITS);
      default:
        throw core.memoryError();
    }
  }

  #allocatePrivate(core: CoreInstance, own: Reservation, count: number): void {
    Reservation.checkFresh(own, count);
    try {
      core.exports.allocatePrivate(count);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    Reservation.useFresh(own, count);
  }

  #allocateCached(core: CoreInstance, own: Reservation, count: number): number {
    Reservation.checkFresh(own, count);
    let visible: number;
    try {
      visible = core.exports.allocateCached(count);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    Reservation.useFresh(own, count);
    return visible;
  }

  #cache(core: CoreInstance, ids: CopyIds): number {
    let visible: number;
    try {
      visible = core.exports.cache(ids.length);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (visible < 0) throw copyError(core, -visible, ids);
    return visible;
  }

  #release(core: CoreInstance, ids: CopyIds, backwards: number): void {
    let status: number;
    try {
      status = -core.exports.release(ids.length, backwards);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (status !== Status.Ok) throw copyError(core, status, ids, backwards);
  }
}

// How many pools this program has made. Ids of different pools have to differ, and nothing else depends on it.
let pools = 0;

// Multiples of 2^32 over the golden ratio lie far apart (Knuth, TAOCP 3, 6.4), and so do the ids of any two pools.
function nextSeal(): number {
  return Math.imul(pools++, 0x9e37_79b1) >>> (32 - GENERATION_BITS);
}

// What the core says about an id of a batch. A private copy that the batch itself has released is unknown the second time.
function copyError(core: CoreInstance, status: number, ids: CopyIds, backwards = 0): KvrouteError {
  const index = core.exports.detail();
  const id = ids[index] as number;
  const first = backwards ? ids.lastIndexOf(id) : ids.indexOf(id);
  switch (status) {
    case Status.UnknownCopy:
      return first === index || first < 0 ? new UnknownCopyError(id, index) : new DuplicateCopyError(id, index);
    case Status.NotReferenced:
      return new NotReferencedError(id, index);
    case Status.AlreadyCached:
      return new AlreadyCachedError(id, index);
    default:
      return new DuplicateCopyError(id, index);
  }
}
function checkCapacity(capacity: unknown): number {
  if (typeof capacity === "number" && Number.isInteger(capacity) && capacity >= 1 && capacity <= CAPACITY_MAX) {
    return capacity;
  }
  const got = typeof capacity === "number" ? capacity : describe(capacity);
  throw new CapacityError(`Expected a capacity that is a whole number from 1 to ${CAPACITY_MAX} blocks, got ${got}.`);
}

function checkCount(count: unknown, what: string): number {
  if (typeof count !== "number")
    throw new ArgumentTypeError(`Expected ${what} to be a number of blocks, got ${describe(count)}.`);
  if (!Number.isInteger(count) || count < 0) {
    throw new ArgumentRangeError(`Expected ${what} to be a whole number of blocks, 0 or more, got ${count}.`);
  }
  return Math.min(count, COUNT_MAX);
}
