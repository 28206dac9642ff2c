import type { WorkerId } from "../core/keys.js";
import type { WorkerRecord, WorkerRegistration, WorkerUpdate } from "../selection/workers.js";

/** Who changes workers when a request asks for it. The catalog of a service is one. */
export interface WorkerRegistry {
  /** Adds a worker, or replaces the one with its id. */
  add(registration: WorkerRegistration): WorkerRecord;
  /** Changes what is given of a worker. */
  update(workerId: WorkerId, update: WorkerUpdate): WorkerRecord;
  /** Lets a worker finish what it has and gives it nothing more. */
  drain(workerId: WorkerId): WorkerRecord;
  /** Removes a worker, and gives its last record. */
  remove(workerId: WorkerId): WorkerRecord;
}
