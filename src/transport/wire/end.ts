import { sealed } from "../checks.js";
import { Inbox } from "../inbox.js";
import type { Limits } from "../limits.js";
import { Listeners } from "../listeners.js";
import { brokenError, closedError, lostError, unknownRankError } from "../reasons.js";
import type { Envelope, ReceiveOptions, SendOptions, Transport } from "../types.js";
import {
  decodeFrame,
  encodeData,
  encodeFrame,
  type Frame,
  type FrameBytes,
  frameError,
  type PeerId,
} from "./frames.js";
import { Peer } from "./peer.js";
import type { Pipe } from "./pipe.js";

/** A transport that also tells who is connected. */
export interface ConnectedTransport extends Transport {
  /** Ranks that envelopes can be sent to, this one among them. */
  readonly ranks: readonly number[];
  /** Calls `listener` when a rank has connected. Returns what takes the listener off again. */
  onPeerJoined(listener: (rank: number) => void): () => void;
}

type Of<K extends Frame["kind"]> = Extract<Frame, { kind: K }>;

/** The end of a pipe whose other end is at a hub, once the hub has welcomed it. */
export class WireEnd implements ConnectedTransport {
  readonly rank: number;
  readonly #pipe: Pipe;
  readonly #limits: Limits;
  readonly #inbox = new Inbox(() => this.#acknowledge());
  readonly #peers = new Map<number, Peer>();
  /** Peers with envelopes that were taken and not acknowledged. */
  readonly #owed = new Set<Peer>();
  readonly #joins = new Listeners<[rank: number]>();
  #takenSince = 0;
  #ended: Error | null = null;
  #closing: Promise<void> | null = null;

  constructor(rank: number, pipe: Pipe, limits: Limits, peers: readonly PeerId[]) {
    this.rank = rank;
    this.#pipe = pipe;
    this.#limits = limits;
    for (const peer of peers) this.#admit(peer);
  }

  get ranks(): number[] {
    return [...this.#peers.keys()];
  }

  async send(outgoing: Omit<Envelope, "source">, options?: SendOptions): Promise<void> {
    if (this.#ended !== null) throw this.#ended;
    const envelope = sealed(this.rank, outgoing, this.#limits.maxEnvelopeBytes);
    const peer = this.#peers.get(envelope.destination);
    if (peer === undefined) throw unknownRankError(envelope.destination);
    const deliver = () => this.#pipe.post(encodeData(peer.epoch, envelope));
    const waiting = peer.window.pass(envelope.bytes.length, options?.signal, deliver);
    if (waiting !== undefined) await waiting;
  }

  receive(options?: ReceiveOptions): AsyncIterable<Envelope> {
    return this.#inbox.receive(options);
  }

  onPeerLost(listener: (rank: number, reason: Error) => void): () => void {
    return this.#inbox.losses.add(listener);
  }

  onPeerJoined(listener: (rank: number) => void): () => void {
    return this.#joins.add(listener);
  }

  close(reason = "it was closed"): Promise<void> {
    this.#closing ??= this.#ended === null ? this.#leave(reason) : Promise.resolve();
    return this.#closing;
  }

  /** Takes a frame from the hub. What breaks the rules ends the connection. */
  onFrame(bytes: FrameBytes): void {
    if (this.#ended !== null) return;
    try {
      this.#obey(decodeFrame(bytes));
    } catch (error) {
      const reason = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
      this.#pipe.post(encodeFrame({ kind: "bye", reason }));
      void this.#pipe.close();
      this.onClose(reason, error);
    }
  }

  /** Hears that the pipe is closed. */
  onClose(reason: string, cause?: unknown): void {
    if (this.#ended !== null) return;
    const error = brokenError(this.rank, reason, cause);
    this.#end(error);
    this.#inbox.end(error);
  }

  async #leave(reason: string): Promise<void> {
    this.#end(closedError(this.rank, reason));
    this.#inbox.end(null);
    this.#pipe.post(encodeFrame({ kind: "bye", reason }));
    await this.#pipe.close();
  }

  #end(error: Error): void {
    this.#ended = error;
    for (const peer of this.#peers.values()) peer.window.fail(error);
    this.#peers.clear();
    this.#owed.clear();
  }

  #obey(frame: Frame): void {
    switch (frame.kind) {
      case "data":
        this.#arrive(frame);
        break;
      case "taken":
        this.#peer(frame).leave(frame.envelopes, frame.bytes);
        break;
      case "joined":
        this.#join(frame);
        break;
      case "lost":
        this.#lose(frame);
        break;
      case "bye":
        void this.#pipe.close();
        this.onClose(frame.reason);
        break;
      default:
        throw frameError(`Expected no ${frame.kind} frame after the greeting, got one`);
    }
  }

  #arrive({ epoch, envelope }: Of<"data">): void {
    const peer = this.#peer({ rank: envelope.source, epoch });
    if (envelope.destination !== this.rank) {
      throw frameError(`Expected an envelope for rank ${this.rank}, got one for ${envelope.destination}`);
    }
    peer.arrive(envelope.bytes.length);
    this.#inbox.put(envelope, peer);
  }

  #join(id: Of<"joined">): void {
    if (this.#peers.has(id.rank)) throw frameError(`Expected a rank that was not connected, got ${id.rank}`);
    this.#admit(id);
    this.#joins.tell(id.rank);
  }

  #lose(id: Of<"lost">): void {
    const peer = this.#peer(id);
    const error = lostError(id.rank, id.reason);
    this.#peers.delete(id.rank);
    this.#owed.delete(peer);
    peer.window.fail(error);
    this.#inbox.lose(id.rank, error);
  }

  #peer({ rank, epoch }: PeerId): Peer {
    const peer = this.#peers.get(rank);
    if (peer?.epoch === epoch) return peer;
    throw frameError(`Expected a peer that is connected, got rank ${rank} of epoch ${epoch}`);
  }

  #admit({ rank, epoch }: PeerId): void {
    if (this.#peers.size >= this.#limits.maxRanks) {
      throw frameError(`Expected at most ${this.#limits.maxRanks} ranks, got one more`);
    }
    this.#peers.set(rank, new Peer(rank, epoch, this.#limits, (peer) => this.#owe(peer)));
  }

  #owe(peer: Peer): void {
    if (this.#peers.get(peer.rank) !== peer) return; // who went needs no acknowledgement
    this.#owed.add(peer);
    this.#takenSince++;
    if (2 * this.#takenSince >= this.#limits.windowEnvelopes) this.#acknowledge();
  }

  /**
   * Acknowledges all that was taken. It is done for half a window at once, and when the receiver waits: a sender that is
   * held up never waits for what is already taken.
   */
  #acknowledge(): void {
    for (const peer of this.#owed) this.#pipe.post(encodeFrame({ kind: "taken", ...peer.settle() }));
    this.#owed.clear();
    this.#takenSince = 0;
  }
}
