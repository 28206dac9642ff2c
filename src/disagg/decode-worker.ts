import type { Clock } from "../clock.js";
import { ArgumentTypeError } from "../errors.js";
import { systemClock } from "../system.js";
import type { Envelope } from "../transport/types.js";
import { asGivenUp, GivenUp } from "./common/given-up.js";
import { Job } from "./common/jobs.js";
import { DECODE_LIMITS, type Limits, readLimits } from "./common/limits.js";
import { type Pending, type WorkerStats, Workshop } from "./common/workshop.js";
import type { DecodeStep, DecodeWorkerOptions } from "./options.js";
import * as protocol from "./protocol.js";

const { TAGS, DONE_SENTINEL, EOS_TOKEN } = protocol;

/** Where the two messages of a KV cache stand in their sequence. Both have one tag, and may overtake each other. */
const HEADER = 0;
const PAYLOAD = 1;

/** A KV cache, or half of it, that nobody has claimed. */
interface KvCache extends Pending {
  /** The prefill worker that it comes from. */
  readonly source: number;
  announcedBytes: bigint | undefined;
  payload: Uint8Array | undefined;
}

class DecodeJob extends Job {
  kv: Uint8Array;
  readonly maxNewTokens: number;

  constructor(clock: Clock, key: string, cache: KvCache, kv: Uint8Array, maxNewTokens: number) {
    super(clock, key, cache.router, cache.requestId, cache.heldBytes);
    this.kv = kv;
    this.maxNewTokens = maxNewTokens;
  }
}

/** Takes KV caches from prefill workers, and generates answers from them: for any number of routers. */
export class DecodeWorker {
  readonly #clock: Clock;
  readonly #limits: Limits<keyof typeof DECODE_LIMITS>;
  readonly #decodeStep: DecodeWorkerOptions["decodeStep"];
  readonly #shop: Workshop<DecodeJob, KvCache>;

  /** @throws {ArgumentTypeError | ArgumentRangeError} if a limit is no number, or outside its range */
  constructor(options: DecodeWorkerOptions) {
    this.#limits = readLimits(DECODE_LIMITS, options);
    this.#clock = options.clock ?? systemClock;
    this.#decodeStep = options.decodeStep;
    if (typeof this.#decodeStep !== "function") {
      throw new ArgumentTypeError(
        `Expected decodeStep to be a function, got a value of type ${typeof this.#decodeStep}.`,
      );
    }
    this.#shop = new Workshop(options.transport, this.#clock, this.#limits, {
      pendingMs: this.#limits.orphanKvMs,
      take: (envelope, key) => this.#take(envelope, key),
      work: (job) => this.#work(job),
      lost: () => {}, // a KV cache that has come is worth as much without the worker that made it
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

  /**
   * Refuses new KV caches, waits for those that have come as long as `closeTimeoutMs`, and ends `run()`. A KV cache that
   * waits for its claim is waited for too.
   */
  close(): Promise<void> {
    return this.#shop.station.close();
  }

  stats(): WorkerStats {
    return this.#shop.stats();
  }

  #take(envelope: Envelope, key: string): void {
    const { tag, source, router } = envelope;
    const isNew = this.#shop.jobs.get(key) === undefined;
    if (tag === TAGS.kvCache && isNew) this.#takeKv(envelope, key);
    else if (tag === TAGS.decodeRequest && isNew && source === router) this.#takeRequest(envelope, key);
    else this.#shop.counts.strays++;
  }

  /** Takes one half of a KV cache, in whichever order they come, and acknowledges it when both are there. */
  #takeKv(envelope: Envelope, key: string): void {
    const { source, sequence, bytes } = envelope;
    try {
      const cache = this.#shop.pending.get(key) ?? this.#open(envelope, key);
      if (cache.source !== source || sequence > PAYLOAD) {
        this.#shop.counts.strays++;
        return;
      }
      if (sequence === HEADER) this.#announce(cache, protocol.decodeKvCacheHeader(bytes).kvBytes);
      else this.#hold(cache, bytes);
      if (cache.announcedBytes === undefined || cache.payload === undefined) return;
      if (cache.announcedBytes !== BigInt(cache.payload.length)) throw differs(cache.announcedBytes, cache.payload);
      this.#shop.pending.renew(key); // from here on it waits for its claim
      this.#acknowledge(envelope);
    } catch (error) {
      this.#shop.refuse(key, envelope, source, error instanceof GivenUp ? error : badMessage(error));
    }
  }

  #open({ source, router, requestId }: Envelope, key: string): KvCache {
    if (!this.#shop.station.isOpen) throw new GivenUp("closing", "The decode worker is closing.");
    const cache: KvCache = { source, router, requestId, heldBytes: 0, announcedBytes: undefined, payload: undefined };
    if (this.#shop.pending.add(key, cache)) return cache;
    throw new GivenUp("busy", `${this.#limits.maxPending} KV caches wait for their claim.`);
  }

  #announce(cache: KvCache, kvBytes: bigint): void {
    if (cache.announcedBytes !== undefined) throw new GivenUp("badMessage", "The KV cache was announced twice.");
    if (kvBytes > BigInt(this.#limits.maxKvBytes)) throw this.#tooLarge(kvBytes);
    cache.announcedBytes = kvBytes;
  }

  #hold(cache: KvCache, payload: Uint8Array): void {
    const { maxKvBytes } = this.#limits;
    if (cache.payload !== undefined) throw new GivenUp("badMessage", "The KV cache came twice.");
    if (payload.length > maxKvBytes) throw this.#tooLarge(payload.length);
    this.#takeRoom(payload.length);
    cache.heldBytes = payload.length;
    cache.payload = payload;
  }

  /** Takes room for KV caches, or says that there is none. */
  #takeRoom(bytes: number): void {
    const { held } = this.#shop;
    if (held.take(bytes)) return;
    const most = `at most ${this.#limits.maxHeldBytes} bytes of KV caches, the decode worker's maxHeldBytes`;
    throw new GivenUp("busy", `Expected ${most}, got ${bytes} more beside ${held.lent}.`);
  }

  #tooLarge(kvBytes: bigint | number): GivenUp {
    const { maxKvBytes } = this.#limits;
    const text = `Expected a KV cache of at most ${maxKvBytes} bytes, the decode worker's maxKvBytes, got ${kvBytes}.`;
    return new GivenUp("tooLarge", text);
  }

  #acknowledge({ source: destination, router, requestId }: Envelope): void {
    const bytes = protocol.encodeKvCacheAck();
    this.#shop.post({ destination, tag: TAGS.kvCacheAck, router, requestId, sequence: 0, bytes });
  }

  #takeRequest(envelope: Envelope, key: string): void {
    const cache = this.#shop.pending.get(key);
    try {
      const maxNewTokens = this.#readRequest(envelope);
      if (cache?.payload === undefined || cache.announcedBytes === undefined)
        throw new GivenUp("kvMissing", "There is no KV cache for the request: none came whole, or it was dropped.");
      this.#shop.begin(new DecodeJob(this.#clock, key, cache, cache.payload, maxNewTokens));
    } catch (error) {
      this.#shop.refuse(key, envelope, envelope.router, error instanceof GivenUp ? error : badMessage(error));
    }
  }

  #readRequest({ bytes, requestId }: Envelope): number {
    const request = protocol.decodeDecodeRequest(bytes);
    if (request.requestId !== requestId)
      throw new GivenUp("badMessage", `Expected a request with the id ${requestId}, got ${request.requestId}.`);
    if (request.maxNewTokens <= this.#limits.maxNewTokens) return request.maxNewTokens;
    const text = `Expected a request for at most ${this.#limits.maxNewTokens} tokens, got ${request.maxNewTokens}.`;
    throw new GivenUp("tooLarge", text);
  }

  /** Generates an answer: token by token, until one that ends it or as many as were asked for, and a DecodeDone. */
  async #work(job: DecodeJob): Promise<boolean> {
    const { requestId, signal, maxNewTokens } = job;
    let position = protocol.kvStartPosition(job.kv);
    let lastToken = 0n;
    for (let step = 0; step < maxNewTokens; step++) {
      const result = this.#decodeStep(job.kv, lastToken, position++, signal);
      const token = typeof result === "bigint" ? result : this.#read(job, await result);
      signal.throwIfAborted();
      await this.#shop.answer(job, TAGS.decodedToken, protocol.encodeDecodedToken({ requestId, tokenId: token }));
      if (token === DONE_SENTINEL || token === EOS_TOKEN) break;
      lastToken = token;
    }
    await this.#shop.answer(job, TAGS.decodeDone, protocol.encodeDecodeDone({ requestId }));
    return true;
  }

  /** Reads what a step gave. */
  #read(job: DecodeJob, step: DecodeStep): bigint {
    if (typeof step === "bigint") return step;
    if (typeof step !== "object" || step === null || !(step.kv instanceof Uint8Array))
      throw new TypeError(`Expected decodeStep to give a bigint, or a token and a KV cache, got ${typeof step}.`);
    if (step.kv.length > this.#limits.maxKvBytes) throw this.#tooLarge(step.kv.length);
    const grownBytes = step.kv.length - job.heldBytes;
    this.#takeRoom(grownBytes);
    job.heldBytes += grownBytes;
    job.kv = step.kv;
    return step.token;
  }
}

function differs(announcedBytes: bigint, payload: Uint8Array): GivenUp {
  return new GivenUp(
    "badMessage",
    `Expected a KV cache of ${announcedBytes} bytes, as announced, got ${payload.length}.`,
  );
}

function badMessage(error: unknown): GivenUp {
  return new GivenUp("badMessage", asGivenUp(error).message);
}
