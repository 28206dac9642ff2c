import type { FrameLimits } from "./frames.js";
import { frameError } from "./frames.js";

/** Envelopes of one way that have passed and were not acknowledged, checked by those who did not send them. */
export class Outstanding {
  #envelopes = 0;
  #bytes = 0;
  readonly #limits: FrameLimits;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** Counts an envelope. @throws {TransportError} `KVROUTE_TRANSPORT_FRAME` if its sender should have waited */
  add(bytes: number): void {
    const { windowEnvelopes, windowBytes, maxEnvelopeBytes } = this.#limits;
    if (bytes > maxEnvelopeBytes) {
      throw frameError(`Expected an envelope of at most ${maxEnvelopeBytes} bytes, got ${bytes}`);
    }
    const isWithin = this.#envelopes < windowEnvelopes && this.#bytes + bytes <= windowBytes;
    if (this.#envelopes > 0 && !isWithin) {
      throw frameError(
        `Expected at most ${windowEnvelopes} envelopes and ${windowBytes} bytes under way, got one more of ${bytes} bytes`,
      );
    }
    this.#envelopes++;
    this.#bytes += bytes;
  }

  /** Takes back what was acknowledged. @throws {TransportError} `KVROUTE_TRANSPORT_FRAME` if it is more than there is */
  remove(envelopes: number, bytes: number): void {
    if (envelopes === 0 || envelopes > this.#envelopes || bytes > this.#bytes) {
      throw frameError(
        `Expected an acknowledgement of at most ${this.#envelopes} envelopes and ${this.#bytes} bytes, got ${envelopes} and ${bytes}`,
      );
    }
    this.#envelopes -= envelopes;
    this.#bytes -= bytes;
  }
}
