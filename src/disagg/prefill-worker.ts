import type { Clock } from "../clock.js";
import { ArgumentTypeError, TransportError } from "../errors.js";
import { systemClock } from "../system.js";
import type { Envelope } from "../transport/types.js";
import { type Deferred, defer } from "./common/deferred.js";
import { asGivenUp, GivenUp } from "./common/given-up.js";
import { Job } from "./common/jobs.js";
import { type Limits, PREFILL_LIMITS, readLimits } from "./common/limits.js";
import { type Pending, type WorkerStats, Workshop } from "./common/workshop.js";
import type { PrefillWorkerOptions } from "./options.js";
import * as protocol from "./protocol.js";

const { TAGS, TOKEN_BYTES } = protocol;

/** A request of which the prompt or the description has come. */
interface Half extends Pending {
  prompt: BigInt64Array<ArrayBuffer> | undefined;
  request: protocol.PrefillRequest | undefined;
}

class PrefillJob extends Job {
  readonly acknowledged: Deferred<void> = defer();
  readonly tokens: BigInt64Array<ArrayBuffer>;
  readonly decodeRank: number;

  constructor(clock: Clock, key: string, half: Half, tokens: BigInt64Array<ArrayBuffer>, decodeRank: number) {
    super(clock, key, half.router, half.requestId, half.heldBytes);
    this.tokens = tokens;
    this.decodeRank = decodeRank;
  }

  override stop(reason: GivenUp): void {
    super.stop(reason);
    this.acknowledged.reject(reason);
  }
}

/** Computes prompts, and hands the KV caches over to decode workers: for any number of routers. */
export class PrefillWorker {
  readonly #clock: Clock;
  readonly #limits: Limits<keyof typeof PREFILL_LIMITS>;
  readonly #prefill: PrefillWorkerOptions["prefill"];
  readonly #shop: Workshop<PrefillJob, Half>;

  /** @throws {ArgumentTypeError | ArgumentRangeError} if a limit is no number, or outside its range */
  constructor(options: PrefillWorkerOptions) {
    this.#limits = readLimits(PREFILL_LIMITS, options);
    this.#clock = options.clock ?? systemClock;
    this.#prefill = options.prefill;
    if (typeof this.#prefill !== "function")
      throw new ArgumentTypeError(`Expected prefill to be a function, got a value of type ${typeof this.#prefill}.`);
    this.#shop = new Workshop(options.transport, this.#clock, this.#limits, {
      pendingMs: this.#limits.pendingMs,
      take: (envelope, key) => this.#take(envelope, key),
      work: (job) => this.#work(job),
      lost: (rank) => this.#lost(rank),
    });
  }

  /**
   * Serves until `close()` is through, `signal` is aborted or the transport ends. Once.
   *
   * @throws {TransportError} if the transport broke
   * @throws {DisaggError} `KVROUTE_DISAGG_CLOSED` if it ran before
   */
  run(signal?: AbortSignal): Promise<void> {
    return this.#shop.station.run(signal);
  }

  /** Refuses new requests, waits for those that have come as long as `closeTimeoutMs`, and ends `run()`. */
  close(): Promise<void> {
    return this.#shop.station.close();
  }

  stats(): WorkerStats {
    return this.#shop.stats();
  }

  #take(envelope: Envelope, key: string): void {
    const { source, router, tag } = envelope;
    const isOfRouter = source === router && !this.#shop.jobs.get(key);
    if (tag === TAGS.promptTokens && isOfRouter) this.#takeHalf(envelope, key, takePrompt);
    else if (tag === TAGS.prefillRequest && isOfRouter) this.#takeHalf(envelope, key, takeRequest);
    else if (tag === TAGS.kvCacheAck || tag === TAGS.error) this.#takeAnswer(envelope, key);
    else this.#shop.counts.strays++;
  }

  /** Takes one half of a request, in whichever order they come, and begins when it has both. */
  #takeHalf(envelope: Envelope, key: string, take: (half: Half, envelope: Envelope) => void): void {
    try {
      const half = this.#shop.pending.get(key) ?? this.#open(envelope, key);
      if (envelope.tag === TAGS.promptTokens) this.#holdPrompt(half, envelope.bytes.length);
      take(half, envelope);
      if (half.prompt !== undefined && half.request !== undefined) this.#begin(key, half, half.prompt, half.request);
    } catch (error) {
      this.#shop.refuse(key, envelope, envelope.router, error instanceof GivenUp ? error : badMessage(error));
    }
  }

  #open({ router, requestId }: Envelope, key: string): Half {
    if (!this.#shop.station.isOpen) throw new GivenUp("closing", "The prefill worker is closing.");
    const half: Half = { router, requestId, heldBytes: 0, prompt: undefined, request: undefined };
    if (this.#shop.pending.add(key, half)) return half;
    throw new GivenUp("busy", `More than ${this.#limits.maxPending} requests have arrived in part.`);
  }

  #holdPrompt(half: Half, bytes: number): void {
    const { maxPromptTokens, maxHeldBytes } = this.#limits;
    if (half.prompt !== undefined) throw new GivenUp("badMessage", "The prompt came twice.");
    if (bytes > maxPromptTokens * TOKEN_BYTES)
      throw new GivenUp("tooLarge", `Expected at most ${maxPromptTokens} prompt tokens, got ${bytes} bytes.`);
    const { held } = this.#shop;
    if (!held.take(bytes)) {
      const most = `at most ${maxHeldBytes} bytes of prompts, the prefill worker's maxHeldBytes`;
      throw new GivenUp("busy", `Expected ${most}, got ${bytes} more beside ${held.lent}.`);
    }
    half.heldBytes = bytes;
  }

  #begin(key: string, half: Half, prompt: BigInt64Array<ArrayBuffer>, request: protocol.PrefillRequest): void {
    if (request.seqLen !== prompt.length) {
      const text = `Expected a prompt of ${request.seqLen} tokens, as its request says, got ${prompt.length}.`;
      throw new GivenUp("badMessage", text);
    }
    this.#shop.begin(new PrefillJob(this.#clock, key, half, prompt, request.decodeRank));
  }

  async #work(job: PrefillJob): Promise<boolean> {
    const kv: unknown = await this.#prefill(job.tokens, job.signal);
    job.signal.throwIfAborted();
    if (!(kv instanceof Uint8Array)) throw new TypeError(`Expected prefill to give a Uint8Array, got ${typeof kv}.`);
    const kvBytes = kv.length;
    if (kvBytes === 0) throw new RangeError("Expected a KV cache of 1 byte or more: 0 bytes say that there is none.");
    if (kvBytes > this.#limits.maxKvBytes) return this.#dropKv(job);
    await this.#handOver(job, kv as Uint8Array<ArrayBuffer>);
    const done = protocol.encodePrefillDone({ requestId: job.requestId, kvBytes: BigInt(kvBytes) });
    await this.#shop.answer(job, TAGS.prefillDone, done);
    return true;
  }

  /** Says that there is no KV cache, since it is too large: a PrefillDone of 0 bytes, as the original does. */
  async #dropKv(job: PrefillJob): Promise<boolean> {
    const done = protocol.encodePrefillDone({ requestId: job.requestId, kvBytes: 0n });
    await this.#shop.answer(job, TAGS.prefillDone, done);
    return false;
  }

  /** Sends the KV cache to the decode worker, and waits until it has it. */
  async #handOver(job: PrefillJob, kv: Uint8Array<ArrayBuffer>): Promise<void> {
    const { decodeRank } = job;
    const { ackTimeoutMs } = this.#limits;
    const header = protocol.encodeKvCacheHeader({ kvBytes: BigInt(kv.length) });
    try {
      await this.#shop.send(job, decodeRank, TAGS.kvCache, 0, header);
      await this.#shop.send(job, decodeRank, TAGS.kvCache, 1, kv);
    } catch (error) {
      if (job.signal.aborted) throw error;
      const isTooLarge = error instanceof TransportError && error.code === "KVROUTE_TRANSPORT_TOO_LARGE";
      throw new GivenUp(isTooLarge ? "tooLarge" : "peerLost", asGivenUp(error).message);
    }
    const late = `Decode worker ${decodeRank} did not acknowledge the KV cache within ${ackTimeoutMs} ms.`;
    await job.within(ackTimeoutMs, late, job.acknowledged.promise);
  }

  /** Takes what a decode worker says about a KV cache. */
  #takeAnswer(envelope: Envelope, key: string): void {
    const job = this.#shop.jobs.get(key);
    if (job === undefined || envelope.source !== job.decodeRank) {
      this.#shop.counts.strays++;
      return;
    }
    try {
      if (envelope.tag === TAGS.kvCacheAck) {
        protocol.decodeKvCacheAck(envelope.bytes);
        job.acknowledged.resolve();
      } else {
        const { code, text } = protocol.decodeError(envelope.bytes);
        job.acknowledged.reject(new GivenUp(code, `Decode worker ${job.decodeRank} refused the KV cache: ${text}`));
      }
    } catch (error) {
      job.acknowledged.reject(badMessage(error));
    }
  }

  #lost(rank: number): void {
    const reason = new GivenUp("peerLost", `Decode worker ${rank} is gone.`);
    for (const job of this.#shop.jobs.all()) if (job.decodeRank === rank) job.acknowledged.reject(reason);
  }
}

function takePrompt(half: Half, { bytes }: Envelope): void {
  half.prompt = protocol.decodePromptTokens(bytes);
}

function takeRequest(half: Half, { bytes, requestId }: Envelope): void {
  if (half.request !== undefined) throw new GivenUp("badMessage", "The request came twice.");
  half.request = protocol.decodePrefillRequest(bytes);
  if (half.request.requestId === requestId) return;
  throw new GivenUp("badMessage", `Expected a request with the id ${requestId}, got ${half.request.requestId}.`);
}

function badMessage(error: unknown): GivenUp {
  return new GivenUp("badMessage", asGivenUp(error).message);
}
