import { describe, expect, test } from "vitest";
import { type PassLoad, polynomialTiming, type TimingTable, tableTiming } from "../../src/sim/engine.js";

const load = (some: Partial<PassLoad>): PassLoad => ({
  prefillRequests: 1,
  prefillTokens: 0,
  prefixTokens: 0,
  decodeRequests: 0,
  decodeContextTokens: 0,
  activeKvTokens: 0,
  totalKvTokens: 1000,
  ...some,
});

describe("polynomialTiming", () => {
  const timing = polynomialTiming();

  test("gives the values of the polynomials", () => {
    // 4.209989e-7 * 10^6 + 15.18344 + 16.50142
    expect(timing(load({ prefillTokens: 1000 })).prefillMs).toBeCloseTo(32.1058589, 6);
    // p = 1/2: -6.435 + 27.005 + 5.74
    expect(timing(load({ decodeRequests: 3, activeKvTokens: 500 })).decodeMs).toBeCloseTo(26.31, 9);
  });

  test("nothing to do takes no time, and decoding at least a millisecond", () => {
    expect(timing(load({}))).toEqual({ prefillMs: 0, decodeMs: 0 });
    expect(timing(load({ decodeRequests: 1, activeKvTokens: 3000 })).decodeMs).toBe(1);
  });
});

describe("tableTiming", () => {
  const table: TimingTable = {
    prefill_isl: [100, 200, 400],
    prefill_ttft_ms: [10, 30, 40],
    decode_active_kv_tokens: [0, 1000],
    decode_context_length: [10, 20],
    decode_itl: [
      [1, 3],
      [5, 7],
    ],
  };
  const timing = tableTiming(JSON.parse(JSON.stringify(table)) as TimingTable);

  test.each([
    [100, 10],
    [150, 20],
    [300, 35],
    [600, 50], // on as between the last two points
    [50, 0], // on as between the first two
    [10, 0], // never below 0
  ])("%i tokens take %d ms to prefill", (prefillTokens, ms) => {
    expect(timing(load({ prefillTokens })).prefillMs).toBeCloseTo(ms, 9);
  });

  test.each([
    [0, 10, 1],
    [500, 15, 4],
    [1000, 20, 7],
    [250, 10, 2],
    [5000, 99, 7], // at the border
    [0, 0, 1],
  ])("decoding with %i tokens in use and %i of context takes %d ms", (activeKvTokens, decodeContextTokens, ms) => {
    expect(timing(load({ decodeRequests: 1, activeKvTokens, decodeContextTokens })).decodeMs).toBeCloseTo(ms, 9);
  });

  test("nothing to do takes no time", () => {
    expect(timing(load({}))).toEqual({ prefillMs: 0, decodeMs: 0 });
  });

  test.each([
    ["prefill_isl", [1]],
    ["prefill_isl", [2, 1, 3]],
    ["prefill_isl", undefined],
    ["prefill_ttft_ms", [1, 2]],
    ["prefill_ttft_ms", [1, -2, 3]],
    ["decode_active_kv_tokens", []],
    ["decode_context_length", ["10", 20]],
    ["decode_itl", [[1, 3]]],
    ["decode_itl", [[1, 3], [5]]],
    ["decode_itl", undefined],
  ])("a table whose %s is %o is refused by name", (name, value) => {
    expect(() => tableTiming({ ...table, [name]: value })).toThrow(new RegExp(`^Expected ${name}`));
  });
});
