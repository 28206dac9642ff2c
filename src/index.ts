/// <reference lib="esnext.disposable" preserve="true" />

export { BlockPool, type BlockPoolOptions, type ReserveOutcome } from "./core/block-pool.js";
export { compileCore } from "./core/compile.js";
export type { BlockCopyId, CopyIds, Hashes, SequenceHash, WorkerId, WorkerWithDpRank } from "./core/keys.js";
export type { BlockReservation } from "./core/reservation.js";
export * from "./errors.js";
