import type { RouterOptions } from "../../src/gateway/router.js";
import { createRouter, type Router } from "../../src/gateway/router.js";
import { createGatewayApi, type GatewayApi, type GatewayApiOptions } from "../../src/http/gateway-api.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { createFakeEngine, type FakeEngine } from "../../src/testing/fake-engine.js";
import { isIdle } from "../gateway/stage.js";
import { type Send, sender, TOKEN } from "./api-stage.js";

export const MODEL = "fake-model";

/** A gateway before a fake engine, behind whatever URLs its workers have, without a server. */
export class GatewayStage {
  readonly engine: FakeEngine = createFakeEngine({ speedupRatio: Number.POSITIVE_INFINITY, outputTokens: 2 });
  readonly router: Router;
  readonly api: GatewayApi;
  readonly send: Send;
  /** The URLs that were asked. */
  readonly asked: string[] = [];
  readonly errors: unknown[] = [];

  constructor(options: Partial<GatewayApiOptions> = {}, router: Partial<RouterOptions> = {}) {
    this.router = createRouter({
      workers: [{ id: "a", url: "http://a.test" }],
      clock: new VirtualClock(),
      random: () => 0.5,
      fetch: (url, init) => {
        this.asked.push(url);
        return this.engine.fetch(url, init);
      },
      ...router,
    });
    this.api = createGatewayApi({
      router: this.router,
      controlToken: TOKEN,
      onError: (error) => this.errors.push(error),
      ...options,
    });
    this.send = sender((request) => this.api.fetch(request), "http://gateway.test");
  }

  /** Asks for a chat. */
  chat(content = "Hello", more: Record<string, unknown> = {}): ReturnType<Send> {
    const messages = [{ role: "user", content }];
    return this.send("POST", "/v1/chat/completions", { model: MODEL, messages, ...more });
  }

  get isIdle(): boolean {
    return isIdle(this.router);
  }

  /** All that may not change where a request is refused. */
  state(): string {
    const { selection } = this.router;
    const workers = this.router.stats().workers.map(({ id, isDraining, inFlight }) => ({ id, isDraining, inFlight }));
    return JSON.stringify([workers, selection.workers.list(), selection.loads(), selection.stats()]);
  }
}
