import type { Clock } from "../clock.js";
import { checkDelay, checkU32 } from "./checks.js";
import { type Limits, limitsOf, type TransportLimits } from "./limits.js";
import { Listeners } from "./listeners.js";
import { unknownRankError } from "./reasons.js";
import { connect } from "./wire/connect.js";
import type { ConnectedTransport } from "./wire/end.js";
import { encodeFrame } from "./wire/frames.js";
import { Guest } from "./wire/guest.js";
import { type Pipe, pipePair } from "./wire/pipe.js";

export interface TransportHubOptions extends TransportLimits {
  /** Ends the wait for those who connect and say nothing, where `attach` is given no clock of its own. */
  readonly clock?: Clock | undefined;
  /** How long one who connects may say nothing, 10,000 by default. */
  readonly helloTimeoutMs?: number | undefined;
}

const HELLO_TIMEOUT_MS = 10_000;

/**
 * Joins the ends of pipes: whoever is connected reaches everybody else, through the hub.
 *
 * The hub keeps no envelopes. Each way has a window between its two ends, and the hub watches that they keep to it: what
 * can pile up in a channel is at most a window for every other rank.
 */
export class TransportHub {
  /** What holds for all that are connected. */
  readonly limits: Limits;
  readonly #clock: Clock | undefined;
  readonly #helloTimeoutMs: number;
  /** Those who have not said who they are, and those who have. */
  readonly #strangers = new Set<Guest>();
  readonly #guests = new Map<number, Guest>();
  readonly #misdeeds = new Listeners<[rank: number | null, error: Error]>();
  #epochs = 0;
  #closed: string | null = null;

  constructor(options: TransportHubOptions = {}) {
    const { clock, helloTimeoutMs = HELLO_TIMEOUT_MS } = options;
    this.limits = limitsOf(options);
    this.#clock = clock;
    this.#helloTimeoutMs = checkDelay(helloTimeoutMs, "helloTimeoutMs");
  }

  /** Ranks that are connected, in the order in which they came. */
  get ranks(): number[] {
    return [...this.#guests.keys()];
  }

  /** Connections that have not said who they are. */
  get strangers(): number {
    return this.#strangers.size;
  }

  /**
   * Takes the near end of a pipe; whoever is at the far end is connected once it has said who it is. Without a clock, here
   * or in the options, it keeps a place among `maxRanks` until then.
   */
  attach(pipe: Pipe, clock: Clock | undefined = this.#clock): void {
    const reason = this.#whyNot();
    if (reason !== null) {
      pipe.listen({ onFrame: () => undefined, onClose: () => undefined });
      pipe.post(encodeFrame({ kind: "refused", reason }));
      void pipe.close();
      return;
    }
    const guest = new Guest(pipe, this.limits, {
      enter: (rank) => this.#enter(guest, rank),
      find: (rank) => this.#guests.get(rank),
      leave: (why) => this.#leave(guest, why),
      misdeed: (error) => this.#misdeeds.tell(guest.rank, error),
    });
    this.#strangers.add(guest);
    guest.waitForHello(clock, this.#helloTimeoutMs);
    guest.listen();
  }

  /** Connects a rank of this process. */
  connect(rank: number): Promise<ConnectedTransport> {
    const [near, far] = pipePair();
    this.attach(near);
    return connect(far, { ...this.limits, rank });
  }

  /**
   * Ends the connection of a rank.
   *
   * @throws {TransportError} `KVROUTE_TRANSPORT_UNKNOWN_RANK`
   */
  disconnect(rank: number, reason = "the hub disconnected it"): void {
    const guest = this.#guests.get(checkU32(rank, "rank"));
    if (guest === undefined) throw unknownRankError(rank);
    guest.dismiss(reason);
  }

  /** Calls `listener` when a connection was ended because it broke the rules; `rank` is null if it never said who it is. */
  onMisdeed(listener: (rank: number | null, error: Error) => void): () => void {
    return this.#misdeeds.add(listener);
  }

  /** Ends all connections, and takes no more. Closing twice is one close. */
  async close(reason = "the hub was closed"): Promise<void> {
    this.#closed ??= reason;
    const all = [...this.#strangers, ...this.#guests.values()];
    await Promise.all(all.map((guest) => guest.dismiss(reason)));
  }

  #whyNot(): string | null {
    if (this.#closed !== null) return `the hub is closed: ${this.#closed}`;
    const { maxRanks } = this.limits;
    if (this.#guests.size + this.#strangers.size >= maxRanks)
      return `${maxRanks} ranks are connected, which is all there may be`;
    return null;
  }

  /** Connects a guest under a rank; says why not, or tells everybody. */
  #enter(guest: Guest, rank: number): string | null {
    if (this.#guests.has(rank)) return `rank ${rank} is taken`;
    this.#strangers.delete(guest);
    this.#epochs = (this.#epochs + 1) >>> 0;
    guest.welcome({ rank, epoch: this.#epochs }, [...this.#guests.values()]);
    for (const other of this.#guests.values()) other.tell(encodeFrame({ kind: "joined", rank, epoch: this.#epochs }));
    this.#guests.set(rank, guest);
    return null;
  }

  #leave(guest: Guest, reason: string): void {
    this.#strangers.delete(guest);
    const { rank, epoch } = guest;
    if (rank === null || this.#guests.get(rank) !== guest) return;
    this.#guests.delete(rank);
    for (const other of this.#guests.values()) other.bidFarewell({ rank, epoch }, reason);
  }
}
