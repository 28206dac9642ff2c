import type { Origin } from "../inbox.js";
import type { Limits } from "../limits.js";
import { SendWindow } from "../send-window.js";
import type { Envelope } from "../types.js";
import { frameError, type PeerId } from "./frames.js";
import { Outstanding } from "./outstanding.js";

/** A peer of an end: the window of the way to it, and what came from it and is not acknowledged. */
export class Peer implements Origin, PeerId {
  readonly window: SendWindow;
  readonly #arrived: Outstanding;
  readonly #owe: (peer: Peer) => void;
  #takenEnvelopes = 0;
  #takenBytes = 0;

  constructor(
    readonly rank: number,
    readonly epoch: number,
    limits: Limits,
    owe: (peer: Peer) => void,
  ) {
    this.window = new SendWindow(limits);
    this.#arrived = new Outstanding(limits);
    this.#owe = owe;
  }

  /** Counts an envelope that came. */
  arrive(bytes: number): void {
    this.#arrived.add(bytes);
  }

  taken(envelope: Envelope): void {
    this.#takenEnvelopes++;
    this.#takenBytes += envelope.bytes.length;
    this.#owe(this);
  }

  /** Tells what was taken and not acknowledged yet, which is thereby done. */
  settle(): PeerId & { envelopes: number; bytes: number } {
    const envelopes = this.#takenEnvelopes;
    const bytes = this.#takenBytes;
    this.#arrived.remove(envelopes, bytes);
    this.#takenEnvelopes = 0;
    this.#takenBytes = 0;
    return { rank: this.rank, epoch: this.epoch, envelopes, bytes };
  }

  /** Hears what the peer has taken. */
  leave(envelopes: number, bytes: number): void {
    const sent = this.window.counts;
    if (envelopes === 0 || envelopes > sent.envelopes || bytes > sent.bytes) {
      throw frameError(
        `Expected an acknowledgement of at most ${sent.envelopes} envelopes and ${sent.bytes} bytes, got ${envelopes} and ${bytes}`,
      );
    }
    this.window.leave(envelopes, bytes);
  }
}
