import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect } from "vitest";
import type { Receipt } from "../../src/gateway/receipt.js";
import type { RequestRecord } from "../../src/gateway/request-log.js";
import { createRouter, type Router, type RouterOptions, type WorkerOptions } from "../../src/gateway/router.js";
import { type GatewayServer, serveGateway } from "../../src/node/serve-gateway.js";
import { undiciUpstream } from "../../src/node/undici-upstream.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";

/** A request at an engine, whose answer the test writes by hand. */
export class Call {
  isGone = false;

  constructor(
    readonly body: string,
    readonly response: ServerResponse,
  ) {
    response.once("close", () => {
      this.isGone = true;
    });
  }

  /** Answers whole. */
  answer(status = 200, headers: Record<string, string> = {}): void {
    const body = status < 400 ? { choices: [] } : { error: { message: "No.", type: "error" } };
    this.response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  }

  /** Sends events of a stream; the first ones begin it. */
  send(...events: string[]): this {
    if (!this.response.headersSent) this.response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) this.response.write(event);
    return this;
  }

  end(...events: string[]): void {
    this.send(...events).response.end();
  }

  /** Breaks the connection off, as a crash does. */
  break(): void {
    this.response.socket?.resetAndDestroy();
  }
}

/** An engine that listens on a port of its own. */
export class HandServer {
  readonly calls: Call[] = [];
  /** Answers at once, where the test does not want to. */
  onCall: ((call: Call) => void) | undefined;
  readonly #server = createServer((request, response) => void this.#take(request, response));

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async call(index = 0): Promise<Call> {
    await until(() => this.calls.length > index, `the engine has request ${index}`);
    return this.calls[index] as Call;
  }

  /** Listens no more, and breaks off what is under way: who connects is refused. */
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const call = new Call(
      body,
      response.on("error", () => {}),
    );
    this.calls.push(call);
    this.onCall?.(call);
  }
}

/** A server with a router on a clock that the test moves, before engines that are written by hand. */
export interface Stage {
  readonly engines: readonly HandServer[];
  readonly router: Router;
  readonly server: GatewayServer;
  readonly clock: VirtualClock;
  readonly receipts: Receipt[];
  readonly records: RequestRecord[];
  /** Asks for a chat. */
  ask(content: string, more?: Ask): Promise<Response>;
}

export interface Ask {
  readonly stream?: boolean;
  readonly path?: string;
  readonly signal?: AbortSignal;
}

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Starts a stage with workers `w0`, `w1` and so on. At the end of the test, nothing may be left of any request. */
export async function serveStage(
  count: number,
  options: Partial<RouterOptions> = {},
  worker: Partial<WorkerOptions> = {},
): Promise<Stage> {
  const engines = await Promise.all(Array.from({ length: count }, () => new HandServer().listen()));
  const clock = new VirtualClock();
  const [receipts, records]: [Receipt[], RequestRecord[]] = [[], []];
  const upstream = undiciUpstream();
  const router = createRouter({
    workers: engines.map(({ url }, index) => ({ id: `w${index}`, url, ...worker })),
    clock,
    random: () => 0.5,
    upstream,
    onDecision: (receipt) => receipts.push(receipt),
    onRequest: (record) => records.push(record),
    ...options,
  });
  const server = await serveGateway({ gateway: router });
  ends.push(async () => {
    await server.close({ signal: AbortSignal.abort() });
    expect([server.connections, server.inFlight]).toEqual([0, 0]);
    await router.close();
    await upstream.close();
    expect(clock.pending).toBe(0);
    for (const engine of engines) await engine.close();
  });
  const ask = (content: string, { stream, path = "/v1/chat/completions", signal }: Ask = {}) =>
    fetch(`${server.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content }], input: content, stream }),
      signal: signal ?? null,
    });
  return { engines, router, server, clock, receipts, records, ask };
}
