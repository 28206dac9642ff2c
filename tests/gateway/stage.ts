import { createRouter, type Router, type RouterOptions } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";

const encoder = new TextEncoder();

/** A request at a worker whose answer the test writes by hand. */
export class HandCall {
  readonly answer: Promise<Response>;
  /** What the body was cancelled with. */
  cancelledWith: unknown;
  isCancelled = false;
  /** What cancelling the body fails with. */
  cancelError: Error | undefined;
  #resolve!: (response: Response) => void;
  #reject!: (reason: unknown) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(
    readonly url: string,
    readonly init: RequestInit & { headers: Headers; signal: AbortSignal },
    isDeaf: boolean,
  ) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (isDeaf) return;
    init.signal.addEventListener("abort", () => this.break(init.signal.reason));
  }

  get body(): string {
    return new TextDecoder().decode(this.init.body as Uint8Array);
  }

  /** Sends headers; the body is open. */
  begin(contentType = "text/event-stream", status = 200): this {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: (reason) => {
        this.isCancelled = true;
        this.cancelledWith = reason;
        if (this.cancelError !== undefined) throw this.cancelError;
      },
    });
    this.#resolve(new Response(body, { status, headers: { "content-type": contentType } }));
    return this;
  }

  /** Answers with a response that is whole. */
  respond(response: Response): this {
    this.#resolve(response);
    return this;
  }

  send(...chunks: (string | Uint8Array)[]): this {
    for (const chunk of chunks) this.#controller?.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
    return this;
  }

  end(): this {
    this.#controller?.close();
    return this;
  }

  /** Breaks off: the body where there is one, else the request. */
  break(reason: unknown = new TypeError("terminated")): this {
    this.#reject(reason);
    try {
      this.#controller?.error(reason);
    } catch {
      // it has ended
    }
    return this;
  }
}

/** Workers whose answers a test writes by hand. A deaf one does not hear that a request was aborted. */
export class HandEngine {
  readonly calls: HandCall[] = [];
  isDeaf = false;

  readonly fetch = (url: string, init: RequestInit): Promise<Response> => {
    const call = new HandCall(url, init as HandCall["init"], this.isDeaf);
    this.calls.push(call);
    return call.answer;
  };

  /** Gives the call with a number, when it is there. */
  async call(index = 0): Promise<HandCall> {
    await until(() => this.calls.length > index, `the worker has request ${index}`);
    return this.calls[index] as HandCall;
  }
}

/** A router before workers that are written by hand. */
export function handStage(options: Partial<RouterOptions> = {}): { engine: HandEngine; router: Router } {
  const engine = new HandEngine();
  const router = createRouter({
    workers: [{ id: "a", url: "http://a" }],
    fetch: engine.fetch,
    retry: false, // one call a request, where a test is not about more
    clock: new VirtualClock(), // stands still: no speed is learnt from how long a test takes
    ...options,
  });
  return { engine, router };
}

export const MODEL = "m";

/** What asks for a chat. */
export function chat(content: string, more: Record<string, unknown> = {}): RequestInit {
  const body = JSON.stringify({ model: MODEL, messages: [{ role: "user", content }], ...more });
  return { method: "POST", headers: { "content-type": "application/json" }, body };
}

export const CHAT_URL = "http://kvroute/v1/chat/completions";

/** An event of a streamed chat with a token. */
export const token = (text: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: finish }] })}\n\n`;

export const DONE = "data: [DONE]\n\n";

/** Nothing is left of any request: neither in the router nor in its books. */
export function isIdle(router: Router): boolean {
  const { inFlight, workers, selection } = router.stats();
  return inFlight === 0 && selection.bookings === 0 && workers.every((worker) => worker.inFlight === 0);
}

/** Adds up how many requests have ended, and in which ways. */
export function outcomesOf(router: Router): Record<string, number> {
  return Object.fromEntries(Object.entries(router.stats().outcomes).filter(([, count]) => count > 0));
}
