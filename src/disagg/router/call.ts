import type { DisaggErrorCode } from "../../errors.js";
import type { Envelope, Transport } from "../../transport/types.js";
import { defer } from "../common/deferred.js";
import { textOf } from "../common/given-up.js";
import { Sequencer } from "../common/sequencer.js";
import * as protocol from "../protocol.js";
import { failure, unreachable, type Whereabouts } from "./failures.js";

const { TAGS } = protocol;

export interface CallTerms {
  readonly id: bigint;
  readonly prefillRank: number;
  readonly decodeRank: number;
  readonly maxNewTokens: number;
  readonly maxKvBytes: number;
  readonly maxReordered: number;
  readonly onToken: (token: bigint) => void;
}

/** One attempt at a request: what is said about one request id between the router, one prefill and one decode worker. */
export class Call {
  readonly terms: CallTerms;
  readonly #transport: Transport;
  readonly #given = new AbortController();
  readonly #prefilled = defer<number>();
  readonly #generated = defer<void>();
  readonly #order: Sequencer<Envelope>;
  #phase: "prefill" | "decode" | "over" = "prefill";
  #tokens = 0;

  constructor(transport: Transport, terms: CallTerms) {
    this.#transport = transport;
    this.terms = terms;
    this.#order = new Sequencer(terms.maxReordered);
  }

  get phase(): "prefill" | "decode" | "over" {
    return this.#phase;
  }

  /** Where the request stands, for an error about the worker whose turn it is. */
  get at(): Whereabouts {
    const { id, prefillRank, decodeRank } = this.terms;
    const role = this.#phase === "prefill" ? "prefill" : "decode";
    return { role, rank: role === "prefill" ? prefillRank : decodeRank, requestId: id, tokens: this.#tokens };
  }

  /** Sends the prompt and its description, and waits until the decode worker has the KV cache. Gives back its bytes. */
  async prefill(tokens: BigInt64Array): Promise<number> {
    const { id, prefillRank, decodeRank } = this.terms;
    await this.#send(prefillRank, TAGS.promptTokens, 0, protocol.encodePromptTokens(tokens));
    const request = protocol.encodePrefillRequest({ requestId: id, seqLen: tokens.length, decodeRank });
    await this.#send(prefillRank, TAGS.prefillRequest, 1, request);
    return this.#prefilled.promise;
  }

  /** Asks for the answer, and waits for its end. Tokens go to `onToken`. */
  async decode(): Promise<void> {
    const { id, decodeRank, maxNewTokens } = this.terms;
    const request = protocol.encodeDecodeRequest({ requestId: id, maxNewTokens });
    await this.#send(decodeRank, TAGS.decodeRequest, 0, request);
    return this.#generated.promise;
  }

  /** Takes a message about the request; `false` if it comes from no one who has a say in it now. */
  take(envelope: Envelope): boolean {
    const { prefillRank, decodeRank } = this.terms;
    if (this.#phase === "prefill" && envelope.source === prefillRank) return this.#takePrefill(envelope);
    if (this.#phase !== "decode" || envelope.source !== decodeRank) return false;
    if (envelope.bytes.length > protocol.ERROR_BYTES_MAX) {
      this.#breach(`sent a message of ${envelope.bytes.length} bytes, more than ${protocol.ERROR_BYTES_MAX}`);
      return true;
    }
    const fate = this.#order.put(envelope.sequence, envelope, this.#takeDecode);
    if (fate === "overrun") this.#breach(`sent more than ${this.terms.maxReordered} messages out of order`);
    return fate !== "stale";
  }

  /** Ends the call: whoever waits gets the error, and what waits to be sent is not sent. */
  fail(error: unknown): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#given.abort(error);
    this.#prefilled.reject(error);
    this.#generated.reject(error);
  }

  #takePrefill(envelope: Envelope): boolean {
    try {
      if (envelope.tag === TAGS.prefillDone) this.#takePrefillDone(envelope.bytes);
      else if (envelope.tag === TAGS.error) this.#takeError(envelope.bytes);
      else return false;
    } catch (error) {
      this.#breach(`sent what cannot be read: ${textOf(error)}`, error);
    }
    return true;
  }

  // A property, so that a token costs no closure.
  readonly #takeDecode = (envelope: Envelope): void => {
    if (this.#phase !== "decode") return; // the message before this one ended the answer
    try {
      if (envelope.tag === TAGS.decodedToken) this.#takeToken(envelope.bytes);
      else if (envelope.tag === TAGS.decodeDone) this.#takeDecodeDone(envelope.bytes);
      else if (envelope.tag === TAGS.error) this.#takeError(envelope.bytes);
      else this.#breach(`sent a message of tag ${envelope.tag}, which it may not`);
    } catch (error) {
      this.#breach(`sent what cannot be read: ${textOf(error)}`, error);
    }
  };

  #takePrefillDone(bytes: Uint8Array): void {
    const { requestId, kvBytes } = protocol.decodePrefillDone(bytes);
    if (!this.#isOurs(requestId)) return;
    const { maxKvBytes } = this.terms;
    if (kvBytes === 0n)
      this.#end("KVROUTE_DISAGG_KV_REFUSED", "dropped the KV cache, which is larger than that worker's maxKvBytes");
    else if (kvBytes > BigInt(maxKvBytes)) {
      this.#end(
        "KVROUTE_DISAGG_KV_REFUSED",
        `made a KV cache of ${kvBytes} bytes, more than the router's maxKvBytes, ${maxKvBytes}`,
      );
    } else {
      this.#phase = "decode";
      this.#prefilled.resolve(Number(kvBytes));
    }
  }

  #takeToken(bytes: Uint8Array): void {
    const { requestId, tokenId } = protocol.decodeDecodedToken(bytes);
    if (!this.#isOurs(requestId)) return;
    if (tokenId === protocol.DONE_SENTINEL || tokenId === protocol.EOS_TOKEN) this.#complete();
    else if (this.#tokens === this.terms.maxNewTokens) {
      this.#breach(`sent more than the ${this.terms.maxNewTokens} tokens that it was asked for`);
    } else {
      this.#tokens++;
      this.terms.onToken(tokenId);
    }
  }

  #takeDecodeDone(bytes: Uint8Array): void {
    if (this.#isOurs(protocol.decodeDecodeDone(bytes).requestId)) this.#complete();
  }

  #takeError(bytes: Uint8Array): void {
    const { code, text } = protocol.decodeError(bytes);
    const what = `gave it up (code ${code}): ${text}`;
    if (this.#phase !== "prefill" || code !== protocol.ERROR_CODES.peerLost) {
      this.#end("KVROUTE_DISAGG_WORKER_FAILED", what);
      return;
    }
    const { prefillRank, decodeRank } = this.terms;
    const at: Whereabouts = { ...this.at, role: "decode", rank: decodeRank };
    this.fail(
      failure("KVROUTE_DISAGG_WORKER_LOST", at, `cannot be reached by prefill worker ${prefillRank}, which ${what}`),
    );
  }

  #complete(): void {
    this.#phase = "over";
    this.#generated.resolve();
  }

  #isOurs(requestId: bigint): boolean {
    if (requestId === this.terms.id) return true;
    this.#breach(`answered about request ${requestId} in a message of this one`);
    return false;
  }

  #breach(what: string, cause?: unknown): void {
    this.#end("KVROUTE_DISAGG_PROTOCOL", what, cause);
  }

  #end(code: DisaggErrorCode, what: string, cause?: unknown): void {
    this.fail(failure(code, this.at, what, cause));
  }

  async #send(destination: number, tag: number, sequence: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const envelope = { destination, tag, router: this.#transport.rank, requestId: this.terms.id, sequence, bytes };
    try {
      await this.#transport.send(envelope, { signal: this.#given.signal });
    } catch (error) {
      throw this.#given.signal.aborted ? this.#given.signal.reason : unreachable(error, this.at);
    }
  }
}
