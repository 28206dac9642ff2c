import { checkU32 } from "./checks.js";
import { type Limits, limitsOf, type TransportLimits } from "./limits.js";
import { MemoryEnd } from "./memory/end.js";
import { refusedError, unknownRankError } from "./reasons.js";
import type { Envelope, Transport } from "./types.js";

/** What can go wrong on the way. The functions are called once an envelope, in order of sending: draw from a seed there. */
export interface MemoryNetworkOptions extends TransportLimits {
  /** Tells whether an envelope is lost; its sender does not hear of it. */
  readonly loses?: ((envelope: Envelope) => boolean) | undefined;
  /** Holds an envelope back until the promise settles, on a clock of the caller's. Nothing is no delay. */
  readonly delay?: ((envelope: Envelope) => Promise<unknown> | undefined) | undefined;
  /** Lets envelopes of one way overtake each other when their delays end, instead of waiting for those before them. */
  readonly reorders?: boolean | undefined;
}

/**
 * Connects ranks of one process, without copying a byte.
 *
 * For tests it delays, loses, reorders and disconnects, as it is told to; it has no clock and no randomness of its own, so
 * that the same functions give the same run.
 */
export class MemoryNetwork {
  readonly #limits: Limits;
  readonly #faults: MemoryNetworkOptions;
  readonly #ends = new Map<number, MemoryEnd>();

  constructor(options: MemoryNetworkOptions = {}) {
    this.#limits = limitsOf(options);
    this.#faults = options;
  }

  /** Ranks that are connected, in the order in which they came. */
  get ranks(): number[] {
    return [...this.#ends.values()].filter((end) => end.isOpen).map((end) => end.rank);
  }

  /**
   * Connects a rank.
   *
   * @throws {TransportError} `KVROUTE_TRANSPORT_REFUSED` if the rank is taken, also while it is closing, or there are too many
   */
  connect(rank: number): Transport {
    checkU32(rank, "rank");
    if (this.#ends.has(rank)) throw refusedError(`Expected a rank that is free, got ${rank}, which is connected.`);
    if (this.#ends.size >= this.#limits.maxRanks) {
      throw refusedError(`Expected at most ${this.#limits.maxRanks} ranks, got one more.`);
    }
    const end = new MemoryEnd(rank, this.#limits, this.#faults, {
      find: (other) => this.#ends.get(other),
      others: () => [...this.#ends.values()].filter((other) => other !== end),
      forget: () => this.#ends.delete(rank),
    });
    this.#ends.set(rank, end);
    return end;
  }

  /**
   * Breaks the connection of a rank, as if its process had died: what it sent and has not arrived is lost, its own sends
   * and receives fail, its peers learn of it at once.
   *
   * @throws {TransportError} `KVROUTE_TRANSPORT_UNKNOWN_RANK`
   */
  disconnect(rank: number, reason = "it was disconnected"): void {
    const end = this.#ends.get(checkU32(rank, "rank"));
    if (end === undefined) throw unknownRankError(rank);
    end.break(reason);
  }
}
