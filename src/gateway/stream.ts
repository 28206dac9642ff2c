import { joinBytes } from "../bytes.js";
import type { KvrouteError } from "../errors.js";
import type { Dialect } from "./dialect.js";
import { errorEvent } from "./envelope.js";
import { EventBoundary } from "./event-boundary.js";
import { eventData } from "./event-data.js";
import type { HeaderReader } from "./header-list.js";
import { isObject } from "./prompt/body.js";
import { ProtocolReader } from "./protocol.js";
import { type Usage, usageOf } from "./usage.js";

/** Bytes of an event that has not ended. A stream with a longer one passes unread. */
export const EVENT_BYTES_MAX = 1_048_576;
/** Bytes of an answer that is no stream and whose usage is read. A longer one passes unread. */
export const ANSWER_BYTES_MAX = 1_048_576;

const NOTHING = new Uint8Array(0);
const decoder = /* @__PURE__ */ new TextDecoder();

/** Reads an answer while it passes, and knows how it may end. */
export interface AnswerReader {
  /** Whether the protocol says that the answer is over, whatever the connection does. */
  readonly hasEnded: boolean;
  /** Whether the engine reported an error in its answer. */
  readonly hasFailed: boolean;
  readonly usage: Usage | undefined;
  /** What names an answer of the Responses protocol, `undefined` for any other. */
  readonly responseId: unknown;
  /** Tokens of output so far, 0 where nobody counts them. */
  readonly outputTokens: number;
  /** Whether the engine has computed the prompt: some say that they begin before they do. */
  readonly hasOutput: boolean;
  /** Takes the next bytes. Returns those that may pass on now. */
  push(chunk: Uint8Array): Uint8Array;
  /** Takes the end of the body. Returns the bytes that were left, and whether the answer is one, and whole. */
  end(): { readonly rest: Uint8Array; readonly isWhole: boolean };
  /** What tells the client, in the answer's own protocol, that it breaks off here; `undefined` where it has no words for it. */
  farewell(error: KvrouteError): Uint8Array | undefined;
}

/** Makes the reader for an answer, by the protocol of its request. Errors pass unread, and what is encoded or of no known protocol. */
export function readerOf(dialect: Dialect | undefined, status: number, headers: HeaderReader): AnswerReader {
  const encoding = headers.get("content-encoding") ?? "identity";
  if (dialect === undefined || status >= 400 || encoding !== "identity") return new BlindReader();
  return isEventStream(headers) ? new StreamReader(dialect) : new JsonReader(dialect);
}

export function isEventStream(headers: HeaderReader): boolean {
  return /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
}

/** Knows nothing: the answer is whole when it ends. */
class BlindReader implements AnswerReader {
  readonly hasEnded = false;
  readonly hasFailed = false;
  readonly usage = undefined;
  readonly responseId = undefined;
  readonly outputTokens = 0;
  readonly hasOutput = true;

  push(chunk: Uint8Array): Uint8Array {
    return chunk;
  }

  end() {
    return { rest: NOTHING, isWhole: true };
  }

  farewell(): undefined {
    return undefined;
  }
}

/**
 * Reads a stream of server-sent events. Whole events pass at once, byte for byte; the beginning of one waits for its end, so
 * that a stream that breaks off can still say so: behind half an event no client would understand it.
 */
class StreamReader implements AnswerReader {
  readonly #dialect: Dialect;
  readonly #protocol: ProtocolReader;
  readonly #boundary = new EventBoundary();
  readonly #decoder = new TextDecoder();
  /** The beginning of an event. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isUnread = false;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
    this.#protocol = new ProtocolReader(dialect);
  }

  get hasEnded(): boolean {
    return this.#protocol.hasEnded;
  }

  get hasFailed(): boolean {
    return this.#protocol.hasFailed;
  }

  get usage(): Usage | undefined {
    return this.#protocol.usage;
  }

  get responseId(): unknown {
    return this.#protocol.responseId;
  }

  get outputTokens(): number {
    return this.#protocol.outputTokens;
  }

  get hasOutput(): boolean {
    return this.#isUnread || this.outputTokens > 0;
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#isUnread) return chunk;
    const ended = this.#boundary.advance(chunk);
    if (ended === 0) return this.#hold(chunk);
    const events = this.#release(chunk.subarray(0, ended));
    this.#read(this.#decoder.decode(events, { stream: true }));
    const begun = chunk.subarray(ended);
    return begun.length === 0 ? events : joinBytes([events, this.#hold(begun)]);
  }

  end() {
    const rest = this.#release(NOTHING);
    // Some leave the last empty line out.
    if (!this.#isUnread) this.#read(`${this.#decoder.decode(rest)}\n\n`);
    return { rest, isWhole: this.#isUnread || this.#protocol.isWhole };
  }

  farewell(error: KvrouteError): Uint8Array | undefined {
    return this.#isUnread ? undefined : errorEvent(error, this.#dialect);
  }

  #read(events: string): void {
    for (const data of eventData(events)) this.#protocol.read(data);
  }

  #hold(begun: Uint8Array): Uint8Array {
    this.#held.push(begun);
    this.#heldBytes += begun.length;
    if (this.#heldBytes <= EVENT_BYTES_MAX) return NOTHING;
    this.#isUnread = true;
    return this.#release(NOTHING);
  }

  #release(last: Uint8Array): Uint8Array {
    if (this.#held.length === 0) return last;
    const all = joinBytes([...this.#held, last]);
    this.#held = [];
    this.#heldBytes = 0;
    return all;
  }
}

/** Keeps the chunks of an answer in JSON as they pass, and reads it when it is whole. */
class JsonReader implements AnswerReader {
  readonly hasEnded = false;
  readonly hasFailed = false;
  readonly outputTokens = 0;
  readonly hasOutput = true;
  readonly #dialect: Dialect;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #usage: Usage | undefined;
  #responseId: unknown;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  get responseId(): unknown {
    return this.#responseId;
  }

  push(chunk: Uint8Array): Uint8Array {
    this.#bytes += chunk.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) this.#chunks.push(chunk);
    else this.#chunks = [];
    return chunk;
  }

  end() {
    if (this.#bytes > ANSWER_BYTES_MAX) return { rest: NOTHING, isWhole: true };
    const answer = parse(this.#chunks);
    if (isObject(answer)) {
      this.#usage = usageOf(answer["usage"], this.#dialect);
      if (this.#dialect === "responses") this.#responseId = answer["id"];
    }
    return { rest: NOTHING, isWhole: isObject(answer) };
  }

  farewell(): undefined {
    return undefined;
  }
}

function parse(chunks: readonly Uint8Array[]): unknown {
  try {
    return JSON.parse(decoder.decode(joinBytes(chunks)));
  } catch {
    return undefined;
  }
}
