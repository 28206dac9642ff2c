import fc from "fast-check";
import { expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import { createRouter, type Router } from "../../src/gateway/router.js";
import type { StopSignal } from "../../src/gateway/stop.js";
import type { Answer } from "../../src/gateway/types.js";
import type { Upstream } from "../../src/gateway/upstream.js";
import { metricsText } from "../../src/http/metrics.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { parsePrometheus } from "../http/prometheus.js";
import { scaled } from "../support/scale.js";
import { until } from "../support/until.js";
import { answer, type FuzzAnswer } from "./fuzz-answers.js";
import { type FuzzRequest, request } from "./fuzz-requests.js";
import { isIdle } from "./stage.js";

// Any request, any answer: what goes in and comes out are bytes of strangers.

const TIMEOUT_MS = 1_000;

/** How a client takes an answer: it reads all, a part, or nothing, and may go at any time. */
interface Client {
  readonly reads: number;
  readonly end: "read" | "cancel" | "abort";
  readonly isEarly: boolean;
}
const client: fc.Arbitrary<Client> = fc.record({
  reads: fc.nat(3),
  end: fc.constantFrom("read", "read", "cancel", "abort"),
  isEarly: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
});

/** Workers that answer as they are told, one answer after the other. */
function upstreamOf(answers: readonly FuzzAnswer[]): Upstream {
  let next = 0;
  return {
    send({ signal }) {
      const given = answers[next++ % answers.length] as FuzzAnswer;
      if (given.end === "throw") throw undefined; // not even a promise
      if (given.end === "refuse") return Promise.reject("no");
      if (given.end === "never") return new Promise(() => {});
      return Promise.resolve(answerOf(given, signal));
    },
  };
}

function answerOf({ status, statusText, headers, chunks, end, cancelFails }: FuzzAnswer, signal: StopSignal): Answer {
  const head = { status, statusText, headers: HeaderList.of(headers) };
  if (chunks === undefined) return head;
  const left = [...chunks];
  const read = async () => {
    if (left.length > 0) return left.shift();
    if (end === "break") throw null;
    if (end === "end") return undefined;
    return new Promise<undefined>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const cancel = async () => {
    if (cancelFails) throw new Error("cannot be cancelled");
  };
  return { ...head, body: { read, cancel } };
}

type Visit = readonly [FuzzRequest, Client, boolean];

async function byAnswer(router: Router, { headers, ...given }: FuzzRequest, signal: AbortSignal): Promise<Answer> {
  return router.answer({ ...given, headers: HeaderList.of(headers), signal });
}

/** The same over the objects of the Web, as a body to read. */
async function byHandler(router: Router, given: FuzzRequest, signal: AbortSignal): Promise<Answer> {
  const { method, path, query, headers, bytes } = given;
  const body = method === "GET" || method === "HEAD" ? null : ((bytes ?? null) as Uint8Array<ArrayBuffer> | null);
  const init = { method, headers: new Headers(headers as [string, string][]), body, signal };
  const response = await router.handler(
    new Request(`http://kvroute${path.startsWith("/") ? path : `/${path}`}${query}`, init),
  );
  const reader = response.body?.getReader();
  const { status, statusText } = response;
  const list = HeaderList.of(response.headers);
  if (reader === undefined) return { status, statusText, headers: list };
  const read = async () => (await reader.read()).value;
  return { status, statusText, headers: list, body: { read, cancel: (reason) => reader.cancel(reason) } };
}

async function visit(router: Router, [given, client, isWeb]: Visit): Promise<void> {
  const controller = new AbortController();
  const asked = (isWeb ? byHandler : byAnswer)(router, given, controller.signal);
  if (client.isEarly) controller.abort("early");
  let got: Answer;
  try {
    got = await asked;
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    return;
  }
  const { status, body } = got;
  if (isWeb) expect(status).toBeGreaterThanOrEqual(200); // without, it is the worker's own
  await take(body, client, controller).catch(() => {}); // what broke off may say so
}

async function take(body: Answer["body"], { reads, end }: Client, controller: AbortController): Promise<void> {
  for (let read = 0; end === "read" || read < reads; read++) if ((await body?.read()) === undefined) return;
  if (end === "cancel") await body?.cancel("enough");
  else controller.abort("enough");
}

async function play(visits: readonly Visit[], answers: readonly FuzzAnswer[]): Promise<void> {
  const clock = new VirtualClock();
  const router = createRouter({
    workers: ["a", "b"].map((id) => ({ id, url: `http://${id}`, maxInFlight: 2 })),
    ...{ clock, random: () => 0.5, upstream: upstreamOf(answers), breaker: { failures: 3, openMs: 500 } },
    ...{ firstByteTimeoutMs: TIMEOUT_MS, stallTimeoutMs: TIMEOUT_MS, maxBodyBytes: 100_000 },
  });
  let left = visits.length;
  const done = Promise.all(visits.map((one) => visit(router, one).finally(() => left--)));
  done.catch(() => {}); // it is told below
  const areDone = () => {
    clock.advance(TIMEOUT_MS / 4); // names of tenants are made by another thread: how many turns that takes, nobody knows
    return left === 0;
  };
  await until(areDone, "every request has ended");
  await done;
  clock.advance(2 * TIMEOUT_MS); // engines that have said all and hold the connection
  expect(isIdle(router)).toBe(true);
  const { selection, queue } = router.stats();
  expect([selection.expiredBookings, queue.waiting, clock.pending]).toEqual([0, 0, 0]);
  for (const worker of router.stats().workers)
    expect(worker).toMatchObject({ activePrefillTokens: 0, activeBlocks: 0 });
  expect(parsePrometheus(metricsText(router.stats())).length).toBeGreaterThan(30);
  await router.close();
}

test("whatever is asked and answered, a request is answered or ends with its client, and nothing is left of it", async () => {
  const visits = fc.array(fc.tuple(request, client, fc.boolean()), { minLength: 1, maxLength: 4 });
  const answers = fc.array(answer, { minLength: 1, maxLength: 6 });
  await fc.assert(fc.asyncProperty(visits, answers, play), { numRuns: scaled(300) });
});

test.each([
  ["a status of 999", { status: 999 }],
  ["a status of 150", { status: 150 }],
  ["a header that none can be", { headers: [["bad name", "1"]] as const }],
])("an answer with %s, which no Response can have, is an error, and ends there", async (_, more) => {
  const given: FuzzAnswer = {
    ...{ status: 200, statusText: "", headers: [], chunks: [new Uint8Array(9)], end: "silence", cancelFails: false },
    ...more,
  };
  const upstream = upstreamOf([given]);
  const clock = new VirtualClock();
  const router = createRouter({ workers: [{ id: "a", url: "http://a" }], clock, upstream, retry: false });
  const response = await router.fetch("/v1/chat/completions", { method: "POST", body: '{"model":"m"}' });
  expect([response.status, await response.json()]).toMatchObject([502, { error: { code: "KVROUTE_UPSTREAM_BROKEN" } }]);
  expect([isIdle(router), clock.pending]).toEqual([true, 0]);
});

test("a reason that no Response can have is left out", async () => {
  const answer = {
    status: 200,
    statusText: "a\nb",
    headers: [],
    chunks: undefined,
    end: "end",
    cancelFails: false,
  } as const;
  const router = createRouter({ workers: [{ id: "a", url: "http://a" }], upstream: upstreamOf([answer]) });
  const { status, statusText } = await router.fetch("/v1/models/m");
  expect([status, statusText]).toEqual([200, ""]);
});
