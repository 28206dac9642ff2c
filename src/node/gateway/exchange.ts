import type { Dispatcher } from "undici";
import { joinBytes } from "../../bytes.js";
import { HeaderList } from "../../gateway/header-list.js";
import type { StopSignal } from "../../gateway/stop.js";
import type { Answer, AnswerBody } from "../../gateway/types.js";
import { OF_THE_CONNECTION } from "../../gateway/upstream.js";
import type { Cohort } from "./cohort.js";

/** Bytes of a body that may wait to be read before the worker is slowed down, but for those that came with them. */
export const HELD_BYTES_MAX = 65_536;

/** Statuses whose answers have no body. */
const NULL_BODY = [204, 205, 304];
const FINAL = 200; // what is below announces another answer
const LEFT_BEHIND = new Set(OF_THE_CONNECTION);

/** What an exchange is made with. */
export interface ExchangeParts {
  /** Whether the answer has a body where its status allows one. */
  readonly hasBody: boolean;
  readonly signal: StopSignal;
  /** Those who go on together when something has come for them. */
  readonly cohort: Cohort;
  /** Is told once that the connection is free, or lost. */
  readonly onDone: () => void;
}

/** One request on its connection, and the body of its answer. */
export class Exchange implements Dispatcher.DispatchHandler, AnswerBody {
  readonly answer: Promise<Answer>;
  readonly #parts: ExchangeParts;
  #settle: { resolve(answer: Answer): void; reject(reason: unknown): void } | undefined;
  /** The answer, which waits for the cohort. */
  #begun: Answer | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #reader: { resolve(chunk: Uint8Array | undefined): void; reject(reason: unknown): void } | undefined;
  #isWaking = false;
  #isPaused = false;
  #isDone = false;
  #isCancelled = false;
  /** Why there is no more, once there is none. */
  #failure: { readonly reason: unknown } | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    this.answer = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    parts.signal.addEventListener("abort", this.#onAbort);
  }

  /** Gives what has come together since the last read as one chunk: a small write costs as much as a large one. */
  read(): Promise<Uint8Array | undefined> {
    if (this.#isCancelled) return Promise.resolve(undefined);
    if (this.#parts.signal.aborted && !this.#hasBeenRead) return Promise.reject(this.#parts.signal.reason);
    if (this.#held.length > 0) return Promise.resolve(this.#take());
    if (this.#failure !== undefined) return Promise.reject(this.#failure.reason);
    if (this.#isDone) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  async cancel(reason?: unknown): Promise<void> {
    if (this.#isCancelled || this.#hasBeenRead) return;
    this.#isCancelled = true;
    this.#held = [];
    this.#reader?.resolve(undefined);
    this.#reader = undefined;
    this.#end(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(asError(this.#failure.reason)); // it never left
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusText: string | undefined,
  ): void {
    if (status < FINAL) return;
    const headers = headersOf(controller.rawHeaders as readonly Buffer[]);
    const body = this.#parts.hasBody && !NULL_BODY.includes(status) ? this : undefined;
    this.#begun = { status, statusText: statusText ?? "", headers, body };
    this.#parts.cohort.join(() => this.#give());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= HELD_BYTES_MAX) {
      this.#isPaused = true;
      controller.pause();
    }
    this.#wake();
  }

  onResponseEnd(): void {
    this.#done();
    this.#wake();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#done();
    this.#give(); // an answer that has begun breaks in its body
    this.#fail(new Error("Expected an answer, but the connection failed.", { cause: error }));
  }

  get #hasBeenRead(): boolean {
    return this.#isDone && this.#failure === undefined && this.#held.length === 0;
  }

  readonly #onAbort = (): void => {
    this.#held = [];
    this.#end(this.#parts.signal.reason);
  };

  /** Ends the request on this side. */
  #end(reason: unknown): void {
    this.#fail(reason);
    this.#controller?.abort(asError(reason));
  }

  /** Gives the answer, once it has begun. */
  #give(): void {
    if (this.#begun === undefined) return;
    this.#settle?.resolve(this.#begun);
    this.#settle = undefined;
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#settle?.reject(this.#failure.reason);
    this.#settle = undefined;
    this.#wake();
  }

  #done(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#parts.signal.removeEventListener("abort", this.#onAbort);
    this.#parts.onDone();
  }

  // What one read of the socket brought is told of chunk by chunk; whoever waits gets it together, behind the last of them.
  #wake(): void {
    if (this.#reader === undefined || this.#isWaking) return;
    this.#isWaking = true;
    this.#parts.cohort.join(() => {
      this.#isWaking = false;
      const reader = this.#reader;
      if (reader === undefined) return;
      this.#reader = undefined;
      if (this.#held.length > 0) reader.resolve(this.#take());
      else if (this.#failure !== undefined) reader.reject(this.#failure.reason);
      else reader.resolve(undefined);
    });
  }

  #take(): Uint8Array {
    const chunk = joinBytes(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#controller?.resume();
    }
    return chunk;
  }
}

function headersOf(raw: readonly Buffer[]): HeaderList {
  const headers = HeaderList.of();
  let named: readonly string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as Buffer).toString("latin1").toLowerCase();
    const value = (raw[at + 1] as Buffer).toString("latin1");
    if (!LEFT_BEHIND.has(name)) headers.append(name, value);
    else if (name === "connection") named = [...named, ...value.toLowerCase().split(",")];
  }
  for (const name of named) headers.delete(name.trim());
  return headers;
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("The request was given up.", { cause: reason });
}
