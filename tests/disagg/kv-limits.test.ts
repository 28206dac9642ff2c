import { describe, expect, test } from "vitest";
import { DECODE_LIMITS, PREFILL_LIMITS, ROUTER_LIMITS } from "../../src/disagg/common/limits.js";
import type { DisaggError } from "../../src/disagg/index.js";
import { TOKEN_BYTES } from "../../src/disagg/index.js";
import { limitsOf } from "../../src/transport/limits.js";
import { quiet } from "./router-clock.js";
import { endless, type Plan, prompt, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4); // 12 bytes of KV cache

test("by default, what one may make all others take, and a transport carries", () => {
  const { maxEnvelopeBytes } = limitsOf({});
  const kvBytes = [ROUTER_LIMITS, PREFILL_LIMITS, DECODE_LIMITS].map(({ maxKvBytes }) => maxKvBytes[0]);
  expect(kvBytes).toEqual([maxEnvelopeBytes, maxEnvelopeBytes, maxEnvelopeBytes]);
  expect(DECODE_LIMITS.maxHeldBytes[0]).toBeGreaterThanOrEqual(DECODE_LIMITS.concurrency[0] * maxEnvelopeBytes);
  const promptBytes = TOKEN_BYTES * ROUTER_LIMITS.maxPromptTokens[0];
  expect(PREFILL_LIMITS.maxPromptTokens[0]).toBe(ROUTER_LIMITS.maxPromptTokens[0]);
  expect(PREFILL_LIMITS.maxHeldBytes[0]).toBeGreaterThanOrEqual(promptBytes);
  expect(maxEnvelopeBytes).toBeGreaterThanOrEqual(promptBytes);
});

describe("the error about a KV cache of 12 bytes says which option to raise, and what both values are", () => {
  test.each<[string, Plan, string[]]>([
    ["router", { router: { maxKvBytes: 11 } }, ["12 bytes", "the router's maxKvBytes, 11"]],
    ["prefill worker", { prefillWorker: { maxKvBytes: 11 } }, ["larger than that worker's maxKvBytes"]],
    [
      "decode worker",
      { decodeWorker: { maxKvBytes: 11 } },
      ["at most 11 bytes, the decode worker's maxKvBytes, got 12"],
    ],
    [
      "decode worker's room",
      { decodeWorker: { maxHeldBytes: 11 } },
      ["at most 11 bytes of KV caches, the decode worker's maxHeldBytes, got 12 more beside 0"],
    ],
  ])("where the limit is the %s's", async (_, plan, words) => {
    const stage = new Stage({ decodeWorker: endless, ...plan });
    const error = await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 2 }));
    for (const word of words) expect((error as Error).message).toContain(word);
    await quiet();
    stage.expectRest();
  });

  test("where the limit is the transport's: nobody is unreachable", async () => {
    const made = { prefill: () => new Uint8Array(2_001) };
    const stage = new Stage({
      network: () => ({ maxEnvelopeBytes: 2_000 }),
      prefillWorker: made,
      decodeWorker: endless,
    });
    const error = await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 2 }));
    expect(error).toMatchObject({ code: "KVROUTE_DISAGG_WORKER_FAILED", rank: 1 });
    expect((error as DisaggError).message).toContain("at most 2000 bytes, the transport's maxEnvelopeBytes, got 2001");
    await quiet();
    stage.expectRest();
  });
});
