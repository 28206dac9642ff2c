import {
  DecodeWorker,
  type DecodeWorkerOptions,
  decodeDecodedToken,
  decodeError,
  encodeCancel,
  encodeDecodeRequest,
  encodeKvCacheHeader,
  encodePrefillRequest,
  encodePromptTokens,
  PrefillWorker,
  type PrefillWorkerOptions,
  TAGS,
} from "../../src/disagg/index.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import type { Envelope, Transport } from "../../src/transport/types.js";
import { quiet, VirtualClock } from "./router-clock.js";
import { decodeStep, prefill } from "./router-model.js";

export const ROUTER = 0;
export const PREFILL = 1;
export const DECODE = 2;

/** A rank that is played by hand: it says what the test wants, and keeps what it hears. */
export class Puppet {
  readonly heard: Envelope[] = [];
  readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
    this.#listen().catch(() => {}); // a test may break its connection
  }

  /** What was heard of a tag. */
  of(tag: number): Envelope[] {
    return this.heard.filter((envelope) => envelope.tag === tag);
  }

  /** The codes of the Errors that were heard. */
  get errors(): number[] {
    return this.of(TAGS.error).map(({ bytes }) => decodeError(bytes).code);
  }

  say(envelope: Partial<Envelope> & Pick<Envelope, "destination" | "tag" | "bytes">): Promise<void> {
    return this.transport.send({ router: ROUTER, requestId: 1n, sequence: 0, ...envelope });
  }

  async #listen(): Promise<void> {
    for await (const envelope of this.transport.receive()) this.heard.push(envelope);
  }
}

/** One worker among puppets. */
export class WorkerStage<Worker extends PrefillWorker | DecodeWorker> {
  readonly clock = new VirtualClock();
  readonly network: MemoryNetwork;
  readonly router: Puppet;
  /** The worker of the other kind. */
  readonly other: Puppet;
  readonly worker: Worker;
  readonly run: Promise<void>;

  constructor(
    rank: number,
    make: (transport: Transport, clock: VirtualClock) => Worker,
    network: MemoryNetwork = new MemoryNetwork(),
  ) {
    this.network = network;
    this.router = new Puppet(network.connect(ROUTER));
    this.other = new Puppet(network.connect(rank === PREFILL ? DECODE : PREFILL));
    this.worker = make(network.connect(rank), this.clock);
    this.run = this.worker.run();
    this.run.catch(() => {});
  }

  /** Sends a prompt and its description. */
  async askPrefill(requestId: bigint, tokens: BigInt64Array, request: Partial<{ seqLen: number }> = {}): Promise<void> {
    await this.prompt(requestId, tokens);
    await this.prefillRequest(requestId, request.seqLen ?? tokens.length);
    await quiet();
  }

  prompt(requestId: bigint, tokens: BigInt64Array): Promise<void> {
    const bytes = encodePromptTokens(tokens);
    return this.router.say({ destination: PREFILL, tag: TAGS.promptTokens, requestId, sequence: 0, bytes });
  }

  prefillRequest(requestId: bigint, seqLen: number): Promise<void> {
    const bytes = encodePrefillRequest({ requestId, seqLen, decodeRank: DECODE });
    return this.router.say({ destination: PREFILL, tag: TAGS.prefillRequest, requestId, sequence: 1, bytes });
  }

  /** Sends a KV cache, as the prefill worker. */
  async giveKv(requestId: bigint, payload: Uint8Array<ArrayBuffer>, announced = payload.length): Promise<void> {
    const to = { destination: DECODE, tag: TAGS.kvCache, requestId };
    await this.other.say({ ...to, sequence: 0, bytes: encodeKvCacheHeader({ kvBytes: BigInt(announced) }) });
    await this.other.say({ ...to, sequence: 1, bytes: payload });
    await quiet();
  }

  async askDecode(requestId: bigint, maxNewTokens: number): Promise<void> {
    const bytes = encodeDecodeRequest({ requestId, maxNewTokens });
    await this.router.say({ destination: DECODE, tag: TAGS.decodeRequest, requestId, bytes });
    await quiet();
  }

  async cancel(destination: number, requestId: bigint): Promise<void> {
    await this.router.say({ destination, tag: TAGS.cancel, requestId, bytes: encodeCancel({ requestId }) });
    await quiet();
  }

  async acknowledge(requestId: bigint): Promise<void> {
    await this.other.say({ destination: PREFILL, tag: TAGS.kvCacheAck, requestId, bytes: new Uint8Array(8) });
    await quiet();
  }
}

export const prefillStage = (options: Partial<PrefillWorkerOptions> = {}, network?: MemoryNetwork) =>
  new WorkerStage(PREFILL, (transport, clock) => new PrefillWorker({ prefill, ...options, transport, clock }), network);

export const decodeStage = (options: Partial<DecodeWorkerOptions> = {}, network?: MemoryNetwork) =>
  new WorkerStage(
    DECODE,
    (transport, clock) => new DecodeWorker({ decodeStep, ...options, transport, clock }),
    network,
  );

/** The tokens that the router heard, in order of sending, and whether the end came behind them. */
export function answerOf(stage: ReturnType<typeof decodeStage>): { tokens: bigint[]; isDone: boolean } {
  const tokens = stage.router.of(TAGS.decodedToken).map(({ bytes }) => decodeDecodedToken(bytes).tokenId);
  return { tokens, isDone: stage.router.of(TAGS.decodeDone)[0]?.sequence === tokens.length };
}
