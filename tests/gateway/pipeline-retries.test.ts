import fc from "fast-check";
import { expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import { createRouter, type Router, type RouterWorkerStats } from "../../src/gateway/router.js";
import type { Answer } from "../../src/gateway/types.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { CountedSignal } from "../support/counted-signal.js";
import { scaled } from "../support/scale.js";
import { HandUpstream, type UpstreamCall } from "./hand-upstream.js";
import { DONE, isIdle, token } from "./stage.js";

// Requests at three workers with all that keeps them waiting or sends them on: retries, breakers, limits and the queue.

const ATTEMPTS = 3;
const TIMES = { firstByteTimeoutMs: 1_000, stallTimeoutMs: 1_000, queueTimeoutMs: 3_000 };
const WORKERS = ["a", "b", "c"];
/** Of no protocol: its requests are for no model, and go to anybody. */
const FREE_PATH = "/v1/files";
const PATHS = ["/v1/chat/completions", "/v1/responses", FREE_PATH];

type Step =
  | { readonly kind: "ask"; readonly model: string; readonly path: string; readonly isDeaf: boolean }
  | { readonly kind: "abort"; readonly pick: number }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "answer"; readonly pick: number; readonly move: Move };

/** What a worker does next with a request. */
type Move =
  | { readonly kind: "refuse" | "break" | "send" | "finish" | "end" | "deny" }
  | { readonly kind: "begin"; readonly isStream: boolean }
  | { readonly kind: "status"; readonly status: number; readonly headers: Readonly<Record<string, string>> };

const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constantFrom("refuse", "break", "send", "finish", "end", "deny") }) as fc.Arbitrary<Move>,
  fc.record({ kind: fc.constant("begin" as const), isStream: fc.boolean() }),
  fc.record({
    kind: fc.constant("status" as const),
    status: fc.constantFrom(400, 404, 429, 500, 502, 503, 529),
    headers: fc.constantFrom({}, { "retry-after": "1" }, { "retry-after": "100" }, { "x-should-retry": "true" }),
  }),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      model: fc.constantFrom("m", "n"),
      path: fc.constantFrom(...PATHS),
      isDeaf: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("abort" as const), pick: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.constantFrom(40, 100, 500, 1_000) }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("answer" as const), pick: fc.nat(), move }) },
);

const steps = fc.array(step, { maxLength: 60, size: "max" });

/** A request, as its client knows it. */
class Visit {
  readonly caller = new CountedSignal();
  readonly calls: UpstreamCall[] = [];
  answer: Answer | undefined;
  text = "";
  endings = 0;
  /** Whether it is still to be sent for the first time. */
  get isNew(): boolean {
    return this.calls.length === 0 && this.endings === 0 && !this.caller.signal.aborted;
  }

  constructor(
    readonly id: number,
    readonly model: string,
    readonly path: string,
  ) {}

  async live(router: Router): Promise<void> {
    try {
      const headers = HeaderList.of([["x-visit", String(this.id)]]);
      const bytes = new TextEncoder().encode(JSON.stringify({ model: this.model, stream: true }));
      const { path, caller } = this;
      this.answer = await router.answer({ method: "POST", path, query: "", headers, bytes, signal: caller.signal });
      const { body } = this.answer;
      for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read()) {
        this.text += new TextDecoder().decode(chunk);
      }
    } catch (error) {
      if (this.answer === undefined) expect(error).toBe(this.caller.signal.reason);
    } finally {
      this.endings++;
    }
  }
}

/** A router, its workers and its clients; all laws are looked at after each step. */
class World {
  readonly clock = new VirtualClock();
  readonly upstream = new HandUpstream();
  readonly visits: Visit[] = [];
  records = 0;
  /** Requests that no worker has had. */
  unsent = 0;
  readonly broken: string[] = [];
  readonly router: Router;
  readonly #maxInFlight: number;

  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
    this.upstream.onCall = (call) => this.#sent(call);
    this.router = this.#makeRouter();
  }

  async play(steps: readonly Step[]): Promise<void> {
    // What comes with the first request comes now: from here on whoever has not been sent waits.
    await this.router.explain({ method: "POST", path: FREE_PATH, query: "", headers: HeaderList.of() });
    for (const step of steps) {
      this.#take(step);
      await rest();
      this.#look();
    }
    await this.#finish();
  }

  #makeRouter(): Router {
    return createRouter({
      workers: WORKERS.map((id) => ({
        id,
        url: `http://${id}`,
        maxInFlight: this.#maxInFlight,
        models: this.#modelsOf(id),
      })),
      clock: this.clock,
      random: () => 0.5,
      upstream: this.upstream,
      breaker: { failures: 2, openMs: 2_000 },
      retry: { attempts: ATTEMPTS, backoffMs: 50 },
      maxQueued: 3,
      ...TIMES,
      // When it is decided, not when it is sent: in between another request may fail, and open the breaker.
      onDecision: ({ worker, model }) => {
        if (this.#stateOf(worker)?.breaker?.state === "open")
          this.broken.push(`model ${model} to ${worker}: its breaker is open`);
      },
      onRequest: ({ worker }) => {
        this.records++;
        if (worker === undefined) this.unsent++;
      },
    });
  }

  #take(step: Step): void {
    const open = this.upstream.calls.filter(({ isOver, isDeaf, isBegun }) => !isOver || (isDeaf && !isBegun));
    if (step.kind === "ask") this.#ask(step);
    else if (step.kind === "advance") this.clock.advance(step.ms);
    else if (step.kind === "abort") pickOf(this.visits, step.pick)?.caller.controller.abort("enough");
    else answer(pickOf(open, step.pick), this.upstream, step.move);
  }

  #ask({ model, path, isDeaf }: Extract<Step, { kind: "ask" }>): void {
    this.upstream.isDeaf = isDeaf;
    const visit = new Visit(this.visits.length, model, path);
    this.visits.push(visit);
    void visit.live(this.router);
  }

  /** Looks whether a request may be sent, and sent there. */
  #sent(call: UpstreamCall): void {
    const visit = this.visits[Number(call.request.headers.get("x-visit"))] as Visit;
    const law = (holds: boolean, what: string) => {
      if (!holds) this.broken.push(`request ${visit.id} to ${call.worker}: ${what}`);
    };
    law(visit.answer === undefined && visit.text === "", "it has an answer");
    law(visit.calls.length < ATTEMPTS, "it has had all its tries");
    law(!visit.caller.signal.aborted, "its client has gone");
    law(
      visit.calls.every(({ request, isOver }) => isOver || request.signal.aborted),
      "it is at another one still",
    );
    const before = this.visits.filter(
      ({ id, model, path, isNew }) =>
        id < visit.id && isNew && model === visit.model && (path === FREE_PATH) === (visit.path === FREE_PATH),
    );
    if (visit.calls.length === 0) law(before.length === 0, `${before[0]?.id} came before`);
    law((this.#stateOf(call.worker)?.inFlight ?? 0) <= this.#maxInFlight, "it is busy");
    const tried = new Set(visit.calls.map(({ worker }) => worker));
    const fresh = this.router.stats().workers.filter(({ id }) => this.#serves(id, visit) && !tried.has(id));
    const isFree = ({ breaker, inFlight }: RouterWorkerStats) =>
      breaker?.state === "closed" && inFlight < this.#maxInFlight;
    if (tried.has(call.worker)) law(!fresh.some(isFree), "another one has not failed it");
    visit.calls.push(call);
  }

  #stateOf(worker: string) {
    return this.router.stats().workers.find(({ id }) => id === worker);
  }

  #look(): void {
    const { inFlight, workers, selection, queue } = this.router.stats();
    expect(this.broken).toEqual([]);
    expect(workers.reduce((sum, worker) => sum + worker.inFlight, 0)).toBe(inFlight);
    expect(selection.bookings).toBe(inFlight);
    expect(queue.waiting).toBeLessThanOrEqual(3);
    for (const worker of workers) {
      expect(worker.inFlight).toBeLessThanOrEqual(this.#maxInFlight);
      if (worker.inFlight === 0) expect(worker).toMatchObject({ activeBlocks: 0, activePrefillTokens: 0 });
    }
    for (const visit of this.visits.filter(({ isNew }) => isNew)) {
      const free = workers.filter(({ id, inFlight, breaker }) => {
        const isFit = breaker?.state === "closed" || (breaker?.state === "half-open" && inFlight === 0);
        return this.#serves(id, visit) && isFit && inFlight < this.#maxInFlight;
      });
      expect(free, `request ${visit.id} waits, and these could have it`).toEqual([]);
    }
    for (const { text, calls } of this.visits) {
      const said = new Set([...text.matchAll(/call (\d+)/g)].map(([, number]) => number));
      const last = this.upstream.calls.indexOf(calls.at(-1) as UpstreamCall);
      expect([...said]).toEqual(said.size === 0 ? [] : [String(last)]);
    }
  }

  /** Lets all time pass that there is, and looks what is left. */
  async #finish(): Promise<void> {
    for (let round = 0; round < 40 && this.visits.some(({ endings }) => endings === 0); round++) {
      this.clock.advance(1_000);
      await rest();
      this.#look();
    }
    for (const call of this.upstream.calls) call.begin(200, {}); // what comes now comes late
    await rest();
    expect(this.visits.filter(({ endings }) => endings !== 1)).toEqual([]);
    const { outcomes, workers, selection, queue } = this.router.stats();
    expect(this.records).toBe(this.visits.length);
    expect(sum(outcomes) + this.unsent).toBe(this.visits.length);
    expect(workers.reduce((total, worker) => total + sum(worker.outcomes), 0)).toBe(this.upstream.calls.length);
    expect(queue.waiting).toBe(0);
    expect(selection).toMatchObject({ bookings: 0, expiredBookings: 0 });
    expect(isIdle(this.router)).toBe(true);
    expect(this.clock.pending).toBe(0);
    expect(this.visits.filter(({ caller }) => caller.listeners > 0)).toEqual([]);
    for (const call of this.upstream.calls) {
      if (call.isDeaf && call.request.signal.aborted && call.isBegun) expect(call.isOver).toBe(true);
    }
    await this.router.close();
  }

  #serves(id: string, { model, path }: Visit): boolean {
    return path === FREE_PATH || this.#modelsOf(id).includes(model);
  }

  #modelsOf(id: string): string[] {
    return id === "c" ? ["n"] : ["m", "n"];
  }
}

function answer(call: UpstreamCall | undefined, { calls }: HandUpstream, move: Move): void {
  if (call === undefined) return;
  const word = `call ${calls.indexOf(call)}`;
  const json = { "content-type": "application/json" };
  if (move.kind === "begin") call.begin(200, move.isStream ? { "content-type": "text/event-stream" } : json);
  else if (move.kind === "status") {
    call.begin(move.status, { ...json, ...move.headers });
    call.send(`{"error":{"message":"${word}"}}`);
    call.end();
  } else if (move.kind === "refuse") call.break(new TypeError("failed", { cause: { code: "ECONNREFUSED" } }));
  else if (move.kind === "break") call.break();
  else if (move.kind === "send") call.send(token(word));
  else if (move.kind === "end") call.end();
  else if (move.kind === "deny") call.cancelError = new Error("cannot be cancelled");
  else {
    call.send(token(word, "stop") + DONE);
    call.end();
  }
}

const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((total, one) => total + one, 0);

function pickOf<T>(from: readonly T[], pick: number): T | undefined {
  return from[pick % Math.max(1, from.length)];
}

/** Waits until what has been set in motion has come to rest. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("whatever workers and clients do, each request ends once, goes where it may, and leaves nothing behind", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), steps, (maxInFlight, steps) => new World(maxInFlight).play(steps)),
    { numRuns: scaled(400) },
  );
});
