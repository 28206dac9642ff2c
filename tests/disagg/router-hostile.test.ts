import { describe, expect, test } from "vitest";
import { encodeDecodedToken, encodePrefillDone, TAGS } from "../../src/disagg/index.js";
import { quiet } from "./router-clock.js";
import { codeOf, type Plan, prompt, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("what nobody may send", () => {
  /** A router with workers played by hand: what they send is `say`. */
  async function byHand(router: Plan["router"] = {}) {
    const stage = new Stage({
      prefill: [],
      decode: [],
      router: { prefillWorkers: [1], decodeWorkers: [2], ...router },
    });
    const [prefill, decode] = [stage.network.connect(1), stage.network.connect(2)];
    const answer = stage.router.collect({ tokens, maxNewTokens: 3 });
    answer.catch(() => {});
    await quiet();
    const ends: Record<number, typeof prefill> = { 1: prefill, 2: decode };
    const say = (from: number, tag: number, sequence: number, bytes: Uint8Array<ArrayBuffer>) =>
      ends[from]?.send({ destination: 0, tag, router: 0, requestId: 1n, sequence, bytes });
    return { stage, answer, say };
  }

  const done = (kvBytes = 1n, requestId = 1n) => encodePrefillDone({ requestId, kvBytes });
  const token = (tokenId: bigint, requestId = 1n) => encodeDecodedToken({ requestId, tokenId });

  test.each<[string, (say: Awaited<ReturnType<typeof byHand>>["say"]) => Promise<void>]>([
    ["another request's id in a PrefillDone", async (say) => say(1, TAGS.prefillDone, 0, done(1n, 2n))],
    ["a PrefillDone of the wrong size", async (say) => say(1, TAGS.prefillDone, 0, new Uint8Array(15))],
    [
      "another request's id in a token",
      async (say) => {
        await say(1, TAGS.prefillDone, 0, done());
        await say(2, TAGS.decodedToken, 0, token(5n, 7n));
      },
    ],
    [
      "more tokens than were asked for",
      async (say) => {
        await say(1, TAGS.prefillDone, 0, done());
        for (let at = 0; at < 4; at++) await say(2, TAGS.decodedToken, at, token(5n));
      },
    ],
    [
      "a tag that is no answer",
      async (say) => {
        await say(1, TAGS.prefillDone, 0, done());
        await say(2, TAGS.kvCache, 0, token(5n));
      },
    ],
    [
      "more messages out of order than maxReordered",
      async (say) => {
        await say(1, TAGS.prefillDone, 0, done());
        for (let at = 1; at < 4; at++) await say(2, TAGS.decodedToken, at, token(5n));
      },
    ],
  ])("%s ends the request", async (_, speak) => {
    const { stage, answer, say } = await byHand({ maxReordered: 2 });
    await speak(say);
    expect(codeOf(await stage.clock.reason(answer))).toBe("KVROUTE_DISAGG_PROTOCOL");
    expect(stage.router.stats().inFlight).toBe(0);
  });

  test("maxReordered messages may come early", async () => {
    const { stage, answer, say } = await byHand({ maxReordered: 2 });
    await say(1, TAGS.prefillDone, 0, done());
    for (const at of [2, 1, 0]) await say(2, TAGS.decodedToken, at, token(BigInt(at)));
    await say(2, TAGS.decodedToken, 3, token(-1n));
    expect(await stage.clock.value(answer)).toEqual([0n, 1n, 2n]);
  });

  test("what is no one's business is dropped and counted: unknown requests, wrong sources, repetitions", async () => {
    const { stage, answer, say } = await byHand();
    await say(2, TAGS.decodedToken, 0, token(9n)); // before its phase
    await say(1, TAGS.cancel, 0, token(9n));
    await say(1, TAGS.prefillDone, 0, done());
    await say(1, TAGS.prefillDone, 0, done()); // after its phase
    await say(2, TAGS.decodedToken, 0, token(1n));
    await say(2, TAGS.decodedToken, 0, token(9n)); // once more
    await say(2, TAGS.decodedToken, 1, token(-1n));
    expect(await stage.clock.value(answer)).toEqual([1n]);
    await say(2, TAGS.decodeDone, 2, new Uint8Array(8)); // of a request that is over
    await quiet();
    expect(stage.router.stats().strays).toBe(5);
  });
});
