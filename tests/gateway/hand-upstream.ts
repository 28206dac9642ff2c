import { HeaderList } from "../../src/gateway/header-list.js";
import type { Answer, AnswerBody } from "../../src/gateway/types.js";
import type { Upstream, UpstreamRequest } from "../../src/gateway/upstream.js";

const encoder = new TextEncoder();

/** A request at a worker as the router sent it, answered by hand: no `Request`, no `Response`, and any status there is. */
export class UpstreamCall implements AnswerBody {
  readonly answer: Promise<Answer>;
  isBegun = false;
  isCancelled = false;
  /** Whether it has ended: nothing more comes, and the worker is free again. */
  isOver = false;
  cancelError: Error | undefined;
  #resolve!: (answer: Answer) => void;
  #reject!: (reason: unknown) => void;
  readonly #chunks: Uint8Array[] = [];
  #failure: { readonly reason: unknown } | undefined;
  #reader: { resolve(chunk: Uint8Array | undefined): void; reject(reason: unknown): void } | undefined;

  /** @param isDeaf whether it does not hear that the request was given up */
  constructor(
    readonly request: UpstreamRequest,
    readonly isDeaf: boolean,
  ) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (!isDeaf) request.signal.addEventListener("abort", () => this.break(request.signal.reason));
  }

  get worker(): string {
    return new URL(this.request.url).hostname;
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.isBegun || (this.isOver && !this.isDeaf)) return;
    this.isBegun = true;
    this.#resolve({ status, statusText: "", headers: HeaderList.of(Object.entries(headers)), body: this });
  }

  send(chunk: string | Uint8Array): void {
    if (this.isOver || !this.isBegun) return;
    this.#chunks.push(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
    this.#wake();
  }

  end(): void {
    if (!this.isBegun) return;
    this.isOver = true;
    this.#wake();
  }

  break(reason: unknown = new TypeError("terminated")): void {
    this.isOver = true;
    this.#failure ??= { reason };
    this.#reject(reason);
    this.#wake();
  }

  read(): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
      this.#wake();
    });
  }

  async cancel(): Promise<void> {
    this.isCancelled = true;
    this.isOver = true;
    this.#wake();
    if (this.cancelError !== undefined) throw this.cancelError;
  }

  #wake(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    const chunk = this.#chunks.shift();
    if (chunk === undefined && !this.isOver) return;
    this.#reader = undefined;
    if (chunk !== undefined) reader.resolve(chunk);
    else if (this.#failure === undefined) reader.resolve(undefined);
    else reader.reject(this.#failure.reason);
  }
}

/** Workers whose answers a test writes by hand, below any `fetch`. */
export class HandUpstream implements Upstream {
  readonly calls: UpstreamCall[] = [];
  isDeaf = false;
  /** Is told of each request before it is there. */
  onCall: (call: UpstreamCall) => void = () => {};

  async send(request: UpstreamRequest): Promise<Answer> {
    const call = new UpstreamCall(request, this.isDeaf);
    this.onCall(call);
    this.calls.push(call);
    return call.answer;
  }
}
