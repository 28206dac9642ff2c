import { ArgumentTypeError, WorkersExhaustedError } from "../errors.js";
import { describe } from "./describe.js";
import type { WorkerId, WorkerWithDpRank } from "./keys.js";
import { checkRank, type WorkerKey, workerKey } from "./worker-key.js";

/** The most schedulers, workers with a rank each, that an index knows at a time. */
export const WORKERS_MAX = 65_536;

/** One scheduler of a worker, as an index knows it. */
export interface Holder {
  readonly worker: WorkerWithDpRank;
  /** Its place in the table, by which the core names it in its answers; used anew once it is gone. */
  readonly slot: number;
  /** By what it is named to the core; 0 until the core has seen it. */
  number: number;
}

/** Who holds how much: in both lists the same index is the same worker. */
export interface Holdings {
  readonly workers: readonly WorkerWithDpRank[];
  readonly blocks: readonly number[];
}

/** The schedulers that an index knows, by worker and rank and by slot. */
export class WorkerTable {
  readonly #workers = new Map<WorkerKey, Map<number, Holder>>();
  readonly #slots: (Holder | undefined)[] = [];
  readonly #vacant: number[] = [];

  /** Finds a scheduler. */
  find(worker: WorkerWithDpRank): Holder | undefined {
    if (typeof worker !== "object" || worker === null) {
      throw new ArgumentTypeError(`Expected a worker, with a workerId and a dpRank, got ${describe(worker)}.`);
    }
    const key = workerKey(worker.workerId);
    const rank = checkRank(worker.dpRank);
    return this.#workers.get(key)?.get(rank);
  }

  /** Makes an entry for a scheduler that `find` does not know. It counts from `add` on. */
  make(worker: WorkerWithDpRank): Holder {
    const slot = this.#vacant.at(-1) ?? this.#slots.length;
    if (slot >= WORKERS_MAX) throw new WorkersExhaustedError(WORKERS_MAX);
    return { worker: frozen(worker), slot, number: 0 };
  }

  /** Adds what `make` made. */
  add(holder: Holder): void {
    if (holder.slot === this.#slots.length) this.#slots.push(holder);
    else this.#slots[this.#vacant.pop() as number] = holder;
    const key = workerKey(holder.worker.workerId);
    const ranks = this.#workers.get(key);
    if (ranks === undefined) this.#workers.set(key, new Map([[holder.worker.dpRank, holder]]));
    else ranks.set(holder.worker.dpRank, holder);
  }

  /** The scheduler in a slot. */
  at(slot: number): Holder {
    return this.#slots[slot] as Holder;
  }

  /** Reads pairs of slot and blocks from an answer of the core. */
  read(halves: Int32Array, from: number, count: number): Holdings {
    const workers = new Array<WorkerWithDpRank>(count);
    const blocks = new Array<number>(count);
    for (let index = 0; index < count; index++) {
      const half = from + 2 * index;
      workers[index] = this.at(halves[half] as number).worker;
      blocks[index] = halves[half + 1] as number;
    }
    return { workers, blocks };
  }

  /** All schedulers of a worker. */
  ranksOf(workerId: WorkerId): Holder[] {
    return [...(this.#workers.get(workerKey(workerId))?.values() ?? [])];
  }

  /** Forgets one scheduler. */
  drop({ worker, slot }: Holder): void {
    this.#slots[slot] = undefined;
    this.#vacant.push(slot);
    const key = workerKey(worker.workerId);
    const ranks = this.#workers.get(key);
    ranks?.delete(worker.dpRank);
    if (ranks?.size === 0) this.#workers.delete(key);
  }

  /** Forgets a worker with all its schedulers. */
  remove(workerId: WorkerId): void {
    for (const { slot } of this.ranksOf(workerId)) {
      this.#slots[slot] = undefined;
      this.#vacant.push(slot);
    }
    this.#workers.delete(workerKey(workerId));
  }
}

// A frozen worker is kept as it is, so that who passed it gets it back by identity. Of any other there is a frozen copy.
function frozen(worker: WorkerWithDpRank): WorkerWithDpRank {
  const { workerId, dpRank } = worker;
  if (Object.isFrozen(worker) && isConstant(worker, "workerId") && isConstant(worker, "dpRank")) return worker;
  return Object.freeze({ workerId, dpRank });
}

// What a frozen object computes may change still.
function isConstant(worker: WorkerWithDpRank, name: "workerId" | "dpRank"): boolean {
  const property = Object.getOwnPropertyDescriptor(worker, name);
  return property !== undefined && "value" in property;
}
