import { createFakeEngine, type FakeEngine, type FakeEngineOptions, VirtualClock } from "../../src/testing/index.js";

/** A fake engine on a virtual clock: a token of a prompt takes 1 ms, one of an answer 10 ms. */
export class FakeStage {
  readonly clock = new VirtualClock({ startMs: 5_000 });
  readonly engine: FakeEngine;

  constructor(options: FakeEngineOptions = {}) {
    this.engine = createFakeEngine({
      blockSize: 4,
      timing: ({ prefillTokens, decodeRequests }) => ({ prefillMs: prefillTokens, decodeMs: decodeRequests && 10 }),
      clock: this.clock,
      ...options,
    });
  }

  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.engine.fetch(`http://engine${path}`, { method: "POST", body: text, ...init });
  }

  get(path: string): Promise<Response> {
    return this.engine.fetch(`http://engine${path}`);
  }

  /** Lets time pass until a promise has settled. Fails if it waits for something that no timer brings. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const done = () => {
      isSettled = true;
    };
    promise.then(done, done);
    for (let idle = 0; !isSettled; ) {
      await turn();
      if (isSettled) break;
      idle = this.clock.step() ? 0 : idle + 1;
      if (idle > 100) throw new Error("It waits for something that no timer brings.");
    }
    return promise;
  }

  async json(path: string, body: unknown, init?: RequestInit): Promise<Record<string, unknown>> {
    const response = await this.settle(this.post(path, body, init));
    return (await response.json()) as Record<string, unknown>;
  }

  /** Reads a stream to its end, and notes when each chunk came. */
  async chunks(response: Response): Promise<{ atMs: number; text: string }[]> {
    const chunks: { atMs: number; text: string }[] = [];
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (;;) {
      const { value } = await this.settle(reader.read());
      if (value === undefined) return chunks;
      chunks.push({ atMs: this.clock.now(), text: new TextDecoder().decode(value) });
    }
  }
}

/** Lets everything happen that needs no time. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
