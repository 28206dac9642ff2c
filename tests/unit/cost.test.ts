import { describe, expect, test } from "vitest";
import {
  DYNAMO_COST_DEFAULTS,
  type DynamoCostInput,
  type DynamoCostOptions,
  dynamoCost,
  dynamoCostSettings,
  dynamoCredit,
} from "../../src/selection/cost.js";

// Costs computed by hand from the formula that Dynamo documents. A request of 10 blocks of 16 tokens, of which the worker
// holds 4, on a worker with 320 tokens of prefill booked, 25 blocks in use with this request, and 3 requests.

const INPUT: DynamoCostInput = {
  blockTokens: 16,
  promptTokens: 160,
  requestBlocks: 10,
  activePrefillTokens: 320,
  leastPrefillTokens: 0,
  deviceBlocks: 4,
  potentialBlocks: 25,
  activeRequests: 3,
  trackPrefill: true,
};

const cost = (options: DynamoCostOptions = {}, input: Partial<DynamoCostInput> = {}): number =>
  dynamoCost({ ...INPUT, ...input }, dynamoCostSettings(options));

describe("Dynamo's cost", () => {
  test("is prefill to be done, less what the cache spares, plus blocks in use", () => {
    expect(cost()).toBe((320 + 160) / 16 - 4 + 25);
    expect(cost({}, { promptTokens: 168 })).toBe(30.5 - 4 + 25); // in parts of a block as well
  });

  test("weighs the blocks of the device's cache", () => {
    expect(cost({ overlapScoreCredit: 0.5 })).toBe(30 - 2 + 25);
    expect(cost({ overlapScoreCredit: 0 })).toBe(55);
    expect(cost({ overlapScoreCredit: 3 })).toBe(30 - 12 + 25);
  });

  test("never gives more credit than there is prefill", () => {
    expect(cost({ overlapScoreCredit: 100 })).toBe(25);
    expect(cost({}, { activePrefillTokens: 0, deviceBlocks: 10 })).toBe(25);
  });

  test("lets the credit fall with the backlog beyond the least busy worker's, by half at one request's worth", () => {
    const decayed = (activePrefillTokens: number, leastPrefillTokens: number, overlapScoreCreditDecay = 1): number =>
      dynamoCredit(
        { ...INPUT, activePrefillTokens, leastPrefillTokens },
        dynamoCostSettings({ overlapScoreCreditDecay }),
      );
    expect(decayed(320, 320)).toBe(4);
    expect(decayed(320, 160)).toBe(2);
    expect(decayed(320, 0)).toBe(4 / 3);
    expect(decayed(320, 0, 0.5)).toBe(2);
    expect(decayed(320, 0, 0)).toBe(4);
    expect(cost({ overlapScoreCreditDecay: 1 }, { leastPrefillTokens: 160 })).toBe(30 - 2 + 25);
  });

  test("lets the credit of the device alone fall, and only where prefill is tracked", () => {
    const settings = dynamoCostSettings({ overlapScoreCreditDecay: 1 });
    expect(dynamoCredit({ ...INPUT, leastPrefillTokens: 160, hostBlocks: 4 }, settings)).toBe(2 + 3);
    expect(dynamoCredit({ ...INPUT, trackPrefill: false }, settings)).toBe(4);
  });

  test("takes a request without a full block for one block's worth of backlog", () => {
    const settings = dynamoCostSettings({ overlapScoreCreditDecay: 1 });
    const input = { ...INPUT, requestBlocks: 0, promptTokens: 5, activePrefillTokens: 16 };
    expect(dynamoCredit(input, settings)).toBe(2);
  });

  test("weighs what host memory, the disk and a shared cache add", () => {
    const tiers = { hostBlocks: 2, diskBlocks: 2, sharedBlocks: 1 };
    expect(cost({}, tiers)).toBe(30 - (4 + 1.5 + 0.5) + 25);
    expect(cost({ hostCacheHitWeight: 1, diskCacheHitWeight: 0.5, sharedCacheMultiplier: 0.5 }, tiers)).toBe(
      30 - (4 + 2 + 1 + 0.5) + 25,
    );
  });

  test("weighs prefill beside blocks in use", () => {
    expect(cost({ prefillLoadScale: 2 })).toBe(2 * 26 + 25);
    expect(cost({ prefillLoadScale: 0 })).toBe(25);
  });

  test("weighs active requests", () => {
    expect(cost({ decodeActiveRequestWeight: 1.5 })).toBe(51 + 4.5);
  });

  test("counts no prefill where none is tracked, and no credit either", () => {
    expect(cost({}, { trackPrefill: false })).toBe(25);
  });

  test("gives a worker that only decodes its credit on the blocks in use", () => {
    const decode = { trackPrefill: false, isDecode: true };
    expect(cost({}, decode)).toBe(25 - 4);
    expect(cost({ decodeActiveRequestWeight: 1 }, decode)).toBe(25 - 4 + 3);
    expect(cost({ overlapScoreCredit: 100 }, decode)).toBe(0);
    expect(cost({}, { ...decode, deviceBlocks: 0 })).toBe(25);
    expect(cost({}, { ...decode, trackPrefill: true })).toBe(51);
  });

  test("has the defaults that Dynamo documents", () => {
    expect(dynamoCostSettings({})).toEqual({
      overlapScoreCredit: 1,
      overlapScoreCreditDecay: 0,
      prefillLoadScale: 1,
      decodeActiveRequestWeight: 0,
      hostCacheHitWeight: 0.75,
      diskCacheHitWeight: 0.25,
      sharedCacheMultiplier: 0,
    });
  });

  test("refuses options out of range", () => {
    for (const name of Object.keys(DYNAMO_COST_DEFAULTS) as (keyof DynamoCostOptions)[]) {
      for (const value of [-0.1, 1_000_001, Number.NaN]) {
        expect(() => dynamoCostSettings({ [name]: value })).toThrow(
          expect.objectContaining({
            code: "KVROUTE_OPTION",
            message: `Expected ${name} to be a number from 0 to 1000000, got ${value}.`,
          }),
        );
      }
      for (const value of [0, 1_000_000]) expect(dynamoCostSettings({ [name]: value })[name]).toBe(value);
    }
  });
});
