import type { WorkerLoad } from "./worker-load.js";

/** What one request has booked on a worker. Made by `BookedLoad.book`, and nobody else changes it. */
export class LoadBooking {
  readonly load: WorkerLoad;
  readonly sequenceHashes: BigUint64Array;
  /** Tokens of the prompt that the worker has to compute. */
  readonly missedTokens: number;
  /** Whether its prefill counts and has not ended. */
  isPrefilling: boolean;
  hasEnded = false;
  outputBlocks = 0;
  /** What its blocks count less than whole ones, in `OUTPUT_PARTS` of a block. */
  discountParts = 0;

  /** Its neighbours in the queue of prefills of the worker. */
  before: LoadBooking | null = null;
  after: LoadBooking | null = null;

  constructor(load: WorkerLoad, request: LoadRequest) {
    this.load = load;
    this.sequenceHashes = request.sequenceHashes;
    this.missedTokens = request.missedTokens;
    this.isPrefilling = request.trackPrefill;
  }
}

/** What is booked of a request. */
export interface LoadRequest {
  /** Kept, and must not be changed any more. */
  readonly sequenceHashes: BigUint64Array;
  readonly missedTokens: number;
  readonly missedBlocks: number;
  /** Whether the prefill counts as load until it ends. */
  readonly trackPrefill: boolean;
}
