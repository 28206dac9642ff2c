import type { FakeEngine, VirtualClock } from "../../../src/testing/index.js";
import { same } from "../../support/agree.js";
import type { Case, Modules } from "./parts.js";

const URL_OF_CHAT = "http://kvroute/v1/chat/completions";
/** How often a sentence is said in a prompt, so that it has several blocks. */
const REPEATS = 40;
/** After so many turns of the event loop, what has not come does not come. */
const TURNS_MAX = 20_000;

const WORKERS = ["a", "b"] as const;

/** A router before two engines of the same process. Time passes for the engines when a case lets it. */
function stage({ kvroute, testing }: Modules) {
  const clock = new testing.VirtualClock({ startMs: 1_000 });
  const engines = WORKERS.map((name) => testing.createFakeEngine({ name, clock, blockSize: 16 }));
  const fetch = (url: string, init: RequestInit) => engineOf(engines, url).fetch(url, init);
  const workers = WORKERS.map((id) => ({ id, url: `http://${id}` }));
  return { router: kvroute.createRouter({ workers, fetch, clock, random: () => 0 }), engines, clock };
}

type Stage = ReturnType<typeof stage>;

function engineOf(engines: readonly FakeEngine[], url: string): FakeEngine {
  return engines[new URL(url).hostname === "a" ? 0 : 1] as FakeEngine;
}

interface Message {
  readonly role: string;
  readonly content: string;
}

function chat(messages: readonly Message[], more: object = {}): RequestInit & { method: string } {
  const body = JSON.stringify({ model: "fake-model", messages, max_tokens: 4, ...more });
  return { method: "POST", headers: { "content-type": "application/json" }, body };
}

const says = (content: string): Message[] => [{ role: "user", content: content.repeat(REPEATS) }];

/** Lets everything happen that needs no time of the engines. */
const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; !holds(); turns++) {
    if (turns === TURNS_MAX) throw new Error(`Expected that ${what}.`);
    await turn();
  }
}

/** Lets time pass, a timer at a time, until a promise has settled. */
async function settle<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const done = () => {
    isSettled = true;
  };
  promise.then(done, done);
  for (let turns = 0; !isSettled; turns++) {
    if (turns === TURNS_MAX) throw new Error("Expected an answer.");
    await turn();
    if (!isSettled) clock.step();
  }
  return promise;
}

/** Reads a stream as it comes. */
class Reading {
  text = "";
  readonly ended: Promise<void>;

  constructor(response: Response) {
    this.ended = this.#read((response.body as ReadableStream<Uint8Array>).getReader());
    this.ended.catch(() => undefined); // whoever wants to know awaits it
  }

  /** Counts the words of the answer that have come. */
  get words(): number {
    return [...this.text.matchAll(/"content":"[^"]/g)].length;
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      this.text += decoder.decode(part.value, { stream: true });
    }
  }
}

const generated = ({ engines }: Stage) => sum(engines.map((engine) => engine.stats().generationTokens));
const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** Nothing is left of any request: neither at the engines nor in the router nor in its books. */
function isIdle({ router, engines }: Stage): boolean {
  const { inFlight, selection, workers } = router.stats();
  const books = [inFlight, selection.bookings, ...workers.map((worker) => worker.activeBlocks)];
  const held = engines.map((engine) => engine.stats());
  return sum([...books, ...held.flatMap((one) => [one.numRunning, one.numWaiting, one.numActiveBlocks])]) === 0;
}

/** Begins a stream of many tokens, and lets the engine make the first. */
async function firstToken(set: Stage, signal?: AbortSignal): Promise<Reading> {
  const request = chat(says("Count to a hundred."), { stream: true, max_tokens: 100, ignore_eos: true });
  const reading = new Reading(await set.router.fetch(URL_OF_CHAT, { ...request, signal: signal ?? null }));
  await settle(
    set.clock,
    until(() => generated(set) > 0, "the engine makes a token"),
  );
  await until(() => reading.words > 0, "the client has the first token before the engine makes the next");
  same("tokens made", 1, generated(set));
  return reading;
}

/** Sends a request and lets time pass until its answer is there. */
async function answer(set: Stage, messages: readonly Message[]) {
  const response = await settle(set.clock, set.router.fetch(URL_OF_CHAT, chat(messages)));
  const { choices, usage } = (await settle(set.clock, response.json())) as {
    choices: readonly { readonly message: Message }[];
    usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } };
  };
  const said = (choices[0] as { message: Message }).message;
  return { said, cached: usage.prompt_tokens_details.cached_tokens };
}

export const routerCases: readonly Case[] = [
  {
    name: "a stream passes the router: the client has its first token before the engine makes the second",
    async run(modules) {
      const set = stage(modules);
      const reading = await firstToken(set);
      await settle(set.clock, reading.ended);
      same("tokens", 100, reading.words);
      same("end", true, reading.text.endsWith("data: [DONE]\n\n"));
      await until(() => isIdle(set), "nothing is left of the request");
      same("completed", 1, set.router.stats().outcomes.completed);
    },
  },
  {
    name: "a stream that the client aborts leaves nothing behind, neither in the router nor at the engine",
    async run(modules) {
      const set = stage(modules);
      const controller = new AbortController();
      const reading = await firstToken(set, controller.signal);
      controller.abort(new Error("no more"));
      const failed = await reading.ended.then(
        () => false,
        () => true,
      );
      same("the client's stream broke off", true, failed);
      await settle(
        set.clock,
        until(() => isIdle(set), "nothing is left of the request"),
      );
      same("aborted", 1, set.router.stats().outcomes.aborted);
      same("tokens made", true, generated(set) < 100);
    },
  },
  {
    name: "two conversations have an engine each, and their second turns find their first in its cache",
    async run(modules) {
      const set = stage(modules);
      const openings = ["What is a hedgehog?", "What is a fox?"].map(says);
      const first = await Promise.all(openings.map((messages) => answer(set, messages)));
      same(
        "an engine each",
        [1, 1],
        set.engines.map((engine) => engine.calls.length),
      );
      for (const [at, messages] of openings.entries()) {
        const { said } = first[at] as { said: Message };
        const own = set.engines.filter((engine) => asked(engine, messages));
        const { cached } = await answer(set, [...messages, said, { role: "user", content: "And what does it eat?" }]);
        same("cached", true, cached >= (messages[0]?.content.length ?? 0) / 4 - 16);
        same(
          "calls of the engine that had the first turn",
          [2],
          own.map((engine) => engine.calls.length),
        );
      }
      same("idle", true, isIdle(set));
    },
  },
  {
    name: "the router's handler answers on the runtime's own clock and timers",
    async run({ kvroute, testing }) {
      const engine = testing.createFakeEngine({ speedupRatio: Number.POSITIVE_INFINITY });
      const router = kvroute.createRouter({ workers: [{ id: "a", url: "http://a" }], fetch: engine.fetch });
      const response = await router.handler(new Request(URL_OF_CHAT, chat(says("Hello."))));
      same("status", 200, response.status);
      const { usage } = (await response.json()) as { usage: { completion_tokens: number } };
      same("tokens", 4, usage.completion_tokens);
      const models = (await (await router.handler(new Request("http://kvroute/v1/models"))).json()) as {
        data: readonly { readonly id: string }[];
      };
      same("models", "fake-model", models.data.map(({ id }) => id).join()); // the list is of another realm on the edge
      await router.close();
      same("closed", 503, (await router.handler(new Request(URL_OF_CHAT, chat(says("Hello."))))).status);
      engine.dispose();
    },
  },
];

/** Whether an engine was asked exactly this. */
function asked({ calls }: FakeEngine, messages: readonly Message[]): boolean {
  return calls.some(({ body }) => JSON.stringify(body["messages"]) === JSON.stringify(messages));
}
