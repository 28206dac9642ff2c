import { Status } from "../abi.js";
import {
  ArgumentRangeError,
  ArgumentTypeError,
  BlocksExhaustedError,
  type KvrouteError,
  NotBookedError,
} from "../errors.js";
import { checkNumber } from "./checks.js";
import { describe } from "./describe.js";
import { DISPOSE } from "./dispose.js";
import { CoreInstance } from "./instance.js";
import type { Hashes, WorkerWithDpRank } from "./keys.js";
import { CoreOwner } from "./owner.js";
import { checkBound } from "./prefix-options.js";
import { type Holder, type Holdings, WorkerTable } from "./worker-table.js";

/** How a table of booked blocks is made. */
export interface BookedBlocksOptions {
  /** Blocks that it keeps, each counted once a worker and rank: 1 to 16,777,215, by default 4,000,000. */
  readonly maxBlocks?: number | undefined;
  /** Memory that the core may take, in bytes; at least 65,536. By default what WebAssembly can address, 4 GiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** The compiled core, for hosts that refuse to compile synchronously; see `compileCore`. */
  readonly module?: WebAssembly.Module | undefined;
}

/** What of a prompt is active where. Workers come in no order that means anything. */
export interface Potential extends Holdings {
  /** How many leading hashes enough bookings wait for. */
  readonly hotBlocks: number;
}

/** By default as many as 64 workers hold with 62,500 active blocks each. */
export const BOOKED_BLOCKS_DEFAULT = 4_000_000;

/** The core behind a table, for tests that look inside. Not part of the package's entry. */
export let coreOfBooked: (blocks: BookedBlocks) => CoreInstance;

/**
 * Counts the blocks that unfinished requests keep in use: how many references each has on which worker, and how many
 * requests wait for their prefill of it. A block counts once a worker and rank, however many requests share it. A hash that
 * occurs twice in a list counts twice, so that lists that are booked and unbooked cancel each other.
 */
export class BookedBlocks {
  static {
    coreOfBooked = (blocks) => blocks.#owner.open();
  }

  readonly #maxBlocks: number;
  readonly #owner: CoreOwner;
  /** Those who hold something: a worker comes with its first block and goes with its last. */
  #workers = new WorkerTable();

  /**
   * Makes an empty table.
   *
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `maxBlocks` is not a whole number from 1 to 16,777,215
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the smallest table does not fit
   */
  constructor(options: BookedBlocksOptions = {}) {
    this.#maxBlocks = checkBound(options.maxBlocks ?? BOOKED_BLOCKS_DEFAULT, "maxBlocks");
    const core = new CoreInstance(options);
    const status = -core.exports.createIndex(this.#maxBlocks, this.#maxBlocks, 0, core.pagesMax);
    if (status !== Status.Ok) throw core.memoryError();
    core.refresh();
    this.#owner = new CoreOwner(core, "table of booked blocks", () => {
      this.#workers = new WorkerTable();
    });
  }

  /** Counts the distinct blocks that are booked, and the entries: a block counts for each worker and rank it is on. */
  get size(): { readonly blocks: number; readonly entries: number } {
    const { exports } = this.#owner.open();
    return { blocks: exports.numBlocks(), entries: exports.numEntries() };
  }

  /** Counts the bytes of memory that the core takes. */
  get memoryBytes(): number {
    return this.#owner.open().exports.memory.buffer.byteLength;
  }

  /**
   * Books the blocks of a request on a worker: one reference for each hash, and one more that waits for it.
   *
   * @returns how many blocks became active on the worker
   * @throws {BlocksExhaustedError} `KVROUTE_BLOCKS_EXHAUSTED` if the table would pass `maxBlocks`
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow
   * @throws {WorkersExhaustedError} `KVROUTE_WORKERS_EXHAUSTED` if 65,536 workers and ranks hold something already
   */
  book(worker: WorkerWithDpRank, hashes: Hashes): number {
    const core = this.#owner.open();
    const holder = this.#workers.find(worker);
    core.putHashes(hashes, 0, "hashes");
    return hashes.length === 0 ? 0 : this.#book(core, holder ?? this.#workers.make(worker), hashes, 1, 1);
  }

  /**
   * Says that the prefill of a booking has ended: one less waits for each hash.
   *
   * @throws {NotBookedError} `KVROUTE_NOT_BOOKED` if nobody waits for a hash, or fewer than the list names it
   */
  settle(hashes: Hashes): void {
    const core = this.#owner.open();
    core.putHashes(hashes, 0, "hashes");
    const { length } = hashes;
    const result = this.#owner.run(() => core.exports.settleAll(length, -1));
    if (result < 0) throw this.#refused(core, -result, hashes);
  }

  /**
   * Takes a booking back: one reference for each hash, and one that waits if its prefill had not ended.
   *
   * @param waiting whether the booking was not settled
   * @returns how many blocks are no longer active on the worker
   * @throws {NotBookedError} `KVROUTE_NOT_BOOKED` if the worker has no such reference to a hash
   */
  unbook(worker: WorkerWithDpRank, hashes: Hashes, waiting: boolean): number {
    const core = this.#owner.open();
    if (typeof waiting !== "boolean") {
      throw new ArgumentTypeError(`Expected waiting to be true or false, got ${describe(waiting)}.`);
    }
    const holder = this.#find(core, worker, hashes);
    return holder === undefined ? 0 : this.#book(core, holder, hashes, -1, waiting ? -1 : 0);
  }

  /**
   * Counts the hashes that have exactly one reference on a worker.
   *
   * @throws {NotBookedError} `KVROUTE_NOT_BOOKED` if a hash has none
   */
  sole(worker: WorkerWithDpRank, hashes: Hashes): number {
    const core = this.#owner.open();
    const holder = this.#find(core, worker, hashes);
    if (holder === undefined) return 0;
    const { length } = hashes;
    const count = this.#owner.run(() => core.exports.countSole(holder.number, length));
    if (count < 0) throw this.#refused(core, -count, hashes);
    return count;
  }

  /**
   * Counts how many of the hashes are active on each worker that has any of them, and how many leading ones are hot.
   *
   * @param hot bookings that make a block hot while they wait for it: a number from 1 on; infinity: none is
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow
   */
  potential(hashes: Hashes, hot: number): Potential {
    const core = this.#owner.open();
    checkNumber(hot, "hot");
    if (!(hot >= 1)) throw new ArgumentRangeError(`Expected hot to be a number of bookings, 1 or more, got ${hot}.`);
    core.putHashes(hashes, 0, "hashes");
    const { length } = hashes;
    if (length === 0) return { workers: [], blocks: [], hotBlocks: 0 };
    let count: number;
    try {
      count = core.exports.potential(length, hot);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (count < 0) throw core.memoryError();
    core.refresh();
    const { workers, blocks } = this.#workers.read(core.halves, 2 * length, count);
    return { workers, blocks, hotBlocks: core.halves[0] as number };
  }

  /** Lets go of the memory; afterwards every call but this one throws `KVROUTE_DISPOSED`. */
  dispose(): void {
    this.#owner.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }

  // Finds a worker and writes the hashes that it must have; undefined where there are none.
  #find(core: CoreInstance, worker: WorkerWithDpRank, hashes: Hashes): Holder | undefined {
    const holder = this.#workers.find(worker);
    core.putHashes(hashes, 0, "hashes");
    if (hashes.length === 0) return undefined;
    if (holder === undefined) throw new NotBookedError(hashes[0] as bigint, 0);
    return holder;
  }

  #book(core: CoreInstance, holder: Holder, hashes: Hashes, references: number, waits: number): number {
    let count: number;
    try {
      count = core.exports.book(holder.number, holder.slot, hashes.length, references, waits);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    core.refresh();
    if (count < 0) throw this.#refused(core, -count, hashes);
    this.#name(holder, core.halves[0] as number);
    return count;
  }

  // Keeps what the core calls a holder: another number where it is new, 0 where it holds nothing any more.
  #name(holder: Holder, number: number): void {
    if (number === holder.number) return;
    if (number === 0) this.#workers.drop(holder);
    else this.#workers.add(holder);
    holder.number = number;
  }

  #refused(core: CoreInstance, status: number, hashes: Hashes): KvrouteError {
    const index = core.halves[0] as number;
    switch (status) {
      case Status.NotBooked:
        return new NotBookedError(hashes[index] as bigint, index);
      case Status.BlocksExhausted:
        return new BlocksExhaustedError(this.#maxBlocks, hashes.length);
      default:
        return core.memoryError();
    }
  }
}
