import { sealed } from "../checks.js";
import { Inbox } from "../inbox.js";
import type { Limits } from "../limits.js";
import type { MemoryNetworkOptions } from "../memory.js";
import { brokenError, closedError, lostError, unknownRankError } from "../reasons.js";
import type { Envelope, ReceiveOptions, SendOptions, Transport } from "../types.js";
import { MemoryWay } from "./way.js";

/** What an end needs of its network. */
export interface Neighbours {
  find(rank: number): MemoryEnd | undefined;
  others(): readonly MemoryEnd[];
  forget(): void;
}

/** One rank of a memory network. */
export class MemoryEnd implements Transport {
  readonly rank: number;
  readonly inbox = new Inbox();
  readonly #limits: Limits;
  readonly #faults: MemoryNetworkOptions;
  readonly #neighbours: Neighbours;
  /** The ways to other ranks, those that were used. */
  readonly #ways = new Map<number, MemoryWay>();
  /** Why nothing can be sent any more. */
  #ended: Error | null = null;
  #closing: Promise<void> | null = null;

  constructor(rank: number, limits: Limits, faults: MemoryNetworkOptions, neighbours: Neighbours) {
    this.rank = rank;
    this.#limits = limits;
    this.#faults = faults;
    this.#neighbours = neighbours;
  }

  get isOpen(): boolean {
    return this.#ended === null;
  }

  async send(outgoing: Omit<Envelope, "source">, options?: SendOptions): Promise<void> {
    if (this.#ended !== null) throw this.#ended;
    const envelope = sealed(this.rank, outgoing, this.#limits.maxEnvelopeBytes);
    const waiting = this.#wayTo(envelope.destination).send(envelope, options?.signal);
    if (waiting !== undefined) await waiting;
  }

  receive(options?: ReceiveOptions): AsyncIterable<Envelope> {
    return this.inbox.receive(options);
  }

  onPeerLost(listener: (rank: number, reason: Error) => void): () => void {
    return this.inbox.losses.add(listener);
  }

  /** Closes this end. The promise settles when what was sent before has arrived, and the rank is free again. */
  close(reason = "it was closed"): Promise<void> {
    this.#closing ??= this.#ended === null ? this.#leave(reason) : Promise.resolve();
    return this.#closing;
  }

  /** Breaks the connection: what is under way is lost. */
  break(reason: string): void {
    for (const way of this.#ways.values()) way.drop();
    if (this.#ended !== null) return; // it is closing, and tells the others when nothing is under way any more
    const error = brokenError(this.rank, reason);
    this.#end(error, reason);
    this.inbox.end(error);
    this.#neighbours.forget();
    for (const other of this.#neighbours.others()) other.inbox.lose(this.rank, lostError(this.rank, reason));
  }

  /** Gives up the way to a rank that went. */
  giveUp(rank: number, error: Error): void {
    const way = this.#ways.get(rank);
    this.#ways.delete(rank);
    way?.fail(error);
    way?.drop();
  }

  async #leave(reason: string): Promise<void> {
    this.#end(closedError(this.rank, reason), reason);
    this.inbox.end(null);
    const news = lostError(this.rank, reason);
    const told = this.#neighbours.others().map(async (other) => {
      await this.#ways.get(other.rank)?.whenEmpty();
      other.inbox.lose(this.rank, news);
    });
    await Promise.all(told);
    this.#neighbours.forget();
  }

  /** Sends nothing more from here, and nothing more to here. */
  #end(error: Error, reason: string): void {
    this.#ended = error;
    for (const way of this.#ways.values()) way.fail(error);
    for (const other of this.#neighbours.others()) other.giveUp(this.rank, lostError(this.rank, reason));
  }

  #wayTo(rank: number): MemoryWay {
    const known = this.#ways.get(rank);
    if (known !== undefined) return known;
    const destination = this.#neighbours.find(rank);
    if (destination === undefined || !destination.isOpen) throw unknownRankError(rank);
    const way = new MemoryWay(destination.inbox, this.#limits, this.#faults);
    this.#ways.set(rank, way);
    return way;
  }
}
