import { describe, expect, test } from "vitest";
import {
  type DisaggError,
  DisaggRouter,
  type DisaggRouterOptions,
  ERROR_CODES,
  encodeDecodeDone,
  encodeDecodedToken,
  encodeError,
  encodePrefillDone,
  type RouterEvent,
  TAGS,
} from "../../src/disagg/index.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import type { Transport } from "../../src/transport/types.js";
import { quiet, VirtualClock } from "./router-clock.js";
import { codeOf, prompt, recorded, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("a request that ends between two steps", () => {
  test.each(["prefill", "decode", "first-token"] as const)(
    "a caller who gives up in the hook for %s leaves no timer, and hears of nothing after the end",
    async (type) => {
      const stop = new AbortController();
      const events: string[] = [];
      const onEvent = (event: RouterEvent) => {
        events.push(event.type);
        if (event.type === type) stop.abort();
      };
      const { stage } = recorded({ router: { onEvent } });
      const answer = stage.router.collect({ tokens, maxNewTokens: 5, signal: stop.signal });
      expect(await answer.catch((error: unknown) => error)).toBe(stop.signal.reason);
      await quiet();
      expect(events.at(-1)).toBe("end");
      stage.expectRest();
    },
  );

  test("whoever gives up at any moment after PrefillDone hears of nothing after the end", async () => {
    for (let steps = 0; steps < 12; steps++) {
      const clock = new VirtualClock();
      const network = new MemoryNetwork();
      const [worker] = [network.connect(1), network.connect(2)];
      const events: string[] = [];
      const onEvent = (event: RouterEvent) => events.push(event.type);
      const options = { prefillWorkers: [1], decodeWorkers: [2], transport: network.connect(0), clock, onEvent };
      const router = new DisaggRouter(options);
      const stop = new AbortController();
      const answer = router.collect({ tokens, maxNewTokens: 5, signal: stop.signal });
      answer.catch(() => {});
      await quiet();
      const bytes = encodePrefillDone({ requestId: 1n, kvBytes: 1n });
      void worker?.send({ destination: 0, tag: TAGS.prefillDone, router: 0, requestId: 1n, sequence: 0, bytes });
      for (let step = 0; step < steps; step++) await undefined;
      stop.abort();
      await quiet();
      expect(events.at(-1)).toBe("end");
      expect([clock.timers, router.stats().inFlight]).toEqual([0, 0]);
      await router.close();
    }
  });
});

/** A router over a transport that does not look at signals, and is full. */
function overDeaf(options: Partial<DisaggRouterOptions> = {}) {
  const clock = new VirtualClock();
  const network = new MemoryNetwork();
  const workers = [network.connect(1), network.connect(2)] as const;
  const end = network.connect(0);
  const stuck = new Set<number>();
  const transport: Transport = {
    rank: 0,
    send: (envelope) => (stuck.has(envelope.destination) ? new Promise(() => {}) : end.send(envelope)),
    receive: (receiving) => end.receive(receiving),
    onPeerLost: (listener) => end.onPeerLost(listener),
    close: (reason) => end.close(reason),
  };
  const router = new DisaggRouter({ prefillWorkers: [1], decodeWorkers: [2], transport, clock, ...options });
  const say = (from: 0 | 1, tag: number, sequence: number, bytes: Uint8Array<ArrayBuffer>) =>
    workers[from].send({ destination: 0, tag, router: 0, requestId: 1n, sequence, bytes });
  return { clock, router, stuck, say };
}

describe("requestTimeoutMs ends a request", () => {
  test("whose prompt waits in a transport that does not give up", async () => {
    const { clock, router, stuck } = overDeaf({ requestTimeoutMs: 90_000 });
    stuck.add(1);
    const error = await clock.reason(router.collect({ tokens, maxNewTokens: 2 }));
    expect([codeOf(error), clock.now()]).toEqual(["KVROUTE_DISAGG_TIMEOUT", 90_000]);
    expect(router.stats()).toMatchObject({ inFlight: 0, failed: 1 });
  });

  test("whose answer came before anybody took its DecodeRequest", async () => {
    const { clock, router, stuck, say } = overDeaf({ requestTimeoutMs: 90_000 });
    stuck.add(2);
    const answer = router.collect({ tokens, maxNewTokens: 2 });
    answer.catch(() => {});
    await quiet();
    await say(0, TAGS.prefillDone, 0, encodePrefillDone({ requestId: 1n, kvBytes: 1n }));
    await say(1, TAGS.decodedToken, 0, encodeDecodedToken({ requestId: 1n, tokenId: 7n }));
    await say(1, TAGS.decodeDone, 1, encodeDecodeDone({ requestId: 1n }));
    const error = await clock.reason(answer);
    expect([codeOf(error), clock.now()]).toEqual(["KVROUTE_DISAGG_TIMEOUT", 90_000]);
    expect(router.stats()).toMatchObject({ inFlight: 0, failed: 1 });
  });
});

test.each([
  [{ prefillTimeoutMs: 70 }, "prefillTimeoutMs, 70"],
  [{ requestTimeoutMs: 50 }, "requestTimeoutMs, 50"],
])("a request that was too late, %o, says which limit it was", async (limits, words) => {
  const { clock, router } = overDeaf(limits);
  const error = await clock.reason(router.collect({ tokens, maxNewTokens: 2 }));
  expect([codeOf(error), (error as Error).message]).toEqual(["KVROUTE_DISAGG_TIMEOUT", expect.stringContaining(words)]);
});

test.each([
  [1_036, "took it"],
  [1_037, "KVROUTE_DISAGG_PROTOCOL"],
])("of messages that come early, one of %i bytes: %s", async (size, fate) => {
  const { router, say } = overDeaf();
  const answer = router.collect({ tokens, maxNewTokens: 2 }).catch(codeOf);
  await quiet();
  await say(0, TAGS.prefillDone, 0, encodePrefillDone({ requestId: 1n, kvBytes: 1n }));
  await say(1, TAGS.error, 1, new Uint8Array(size)); // no message of a decode worker has more than an Error
  await quiet();
  expect(router.stats().inFlight).toBe(fate === "took it" ? 1 : 0);
  await say(1, TAGS.decodeDone, 0, encodeDecodeDone({ requestId: 1n }));
  expect(await answer).toEqual(fate === "took it" ? [] : fate);
});

test("a session whose name is too long is refused when it is asked for", () => {
  const stage = new Stage();
  const ask = (session: string) => stage.router.route({ tokens, maxNewTokens: 1, session });
  ask("s".repeat(1_024));
  expect(() => ask("s".repeat(1_025))).toThrow(expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }));
});

describe("a decode worker that its prefill worker cannot reach", () => {
  /** A router with one prefill worker, played by hand, that reaches every decode worker but 2. */
  async function chosen(decodeWorkers: number[], session?: string): Promise<[unknown, number[]]> {
    const clock = new VirtualClock();
    const network = new MemoryNetwork();
    const prefill = network.connect(1);
    const ranks: number[] = [];
    const onEvent = (event: RouterEvent) => {
      if (event.type !== "prefill") return;
      ranks.push(event.decodeRank);
      const { requestId, decodeRank } = event;
      const error = encodeError({ requestId, code: ERROR_CODES.peerLost, text: "no way to 2" });
      const done = encodePrefillDone({ requestId, kvBytes: 1n });
      const [tag, bytes] = decodeRank === 2 ? [TAGS.error, error] : [TAGS.prefillDone, done];
      void prefill.send({ destination: 0, tag, router: 0, requestId, sequence: 0, bytes });
      if (decodeRank === 2) return;
      const end = { destination: 0, tag: TAGS.decodeDone, router: 0, requestId, sequence: 0 };
      queueMicrotask(() => setImmediate(() => void decode?.send({ ...end, bytes: encodeDecodeDone({ requestId }) })));
    };
    const decode = decodeWorkers.length > 1 ? network.connect(4) : undefined;
    network.connect(2);
    const transport = network.connect(0);
    const router = new DisaggRouter({ prefillWorkers: [1], decodeWorkers, transport, clock, onEvent });
    const result = router.collect({ tokens, maxNewTokens: 1, session }).catch((error: unknown) => error);
    return [await result, ranks];
  }

  test.each([undefined, "a"])("is the one that failed: another is tried (session %o)", async (session) => {
    expect(await chosen([2, 4], session)).toEqual([[], [2, 4]]);
  });

  test("fails the request if there is no other, and the error names it", async () => {
    const [error, ranks] = await chosen([2]);
    expect([codeOf(error), (error as DisaggError).rank, ranks]).toEqual(["KVROUTE_DISAGG_WORKER_LOST", 2, [2]]);
  });
});
