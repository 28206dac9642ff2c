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
    const { workerId, dpRank } = worker;
    return { worker: Object.freeze({ workerId, dpRank }), slot, number: 0 };
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

  /** All schedulers of a worker. */
  ranksOf(workerId: WorkerId): Holder[] {
    return [...(this.#workers.get(workerKey(workerId))?.values() ?? [])];
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
