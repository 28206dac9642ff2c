import { beforeEach, describe, expect, test } from "vitest";
import { BookedLoad, type LoadBooking, type LoadRequest, type WorkerLoad } from "../../src/selection/load.js";
import { MapBlockBook } from "../model/load-map-book.js";

const hashes = (...names: number[]): BigUint64Array => BigUint64Array.from(names, BigInt);

let load: BookedLoad;
let worker: WorkerLoad;

beforeEach(() => {
  load = new BookedLoad(new MapBlockBook());
  worker = load.open({ workerId: 1, dpRank: 0 });
});

const book = (missedTokens: number, nowMs: number, extra: Partial<LoadRequest> = {}): LoadBooking => {
  const request = { sequenceHashes: hashes(1, 2), missedTokens, missedBlocks: 2, trackPrefill: true, ...extra };
  return load.book(worker, request, nowMs);
};

describe("booked load", () => {
  test("counts a block that two requests share once, until the last of them is released", () => {
    const first = book(10, 0, { sequenceHashes: hashes(1, 2) });
    const second = book(10, 0, { sequenceHashes: hashes(1, 3) });
    expect(worker.activeBlocks).toBe(3);
    load.release(first, 1);
    expect(worker.activeBlocks).toBe(2);
    load.release(second, 2);
    expect(worker.activeBlocks).toBe(0);
  });

  test("takes a prefill to run from its booking, or from when the one before it ended", () => {
    const first = book(100, 10);
    const second = book(50, 20);
    expect([worker.headTokens, worker.headSinceMs]).toEqual([100, 10]);
    load.endPrefill(first, 60);
    expect([worker.headTokens, worker.headSinceMs]).toEqual([50, 60]);
    load.endPrefill(second, 80);
    book(7, 200);
    expect([worker.headTokens, worker.headSinceMs]).toEqual([7, 200]);
  });

  test("learns the speed of a worker from the time between ends, where each sample fades by 2 % a prefill", () => {
    const first = book(100, 0);
    const second = book(300, 0);
    load.endPrefill(first, 50);
    expect(worker.tokensPerMs).toBe(100 / 50);
    load.endPrefill(second, 150);
    expect(worker.tokensPerMs).toBeCloseTo((0.98 * 100 + 300) / (0.98 * 50 + 100), 12);
    expect(worker.endedPrefills).toBe(2);
  });

  test("takes two that end together for one batch", () => {
    const both = [book(100, 0), book(300, 0)];
    for (const one of both.reverse()) load.endPrefill(one, 50); // the second first: engines batch in an order of their own
    expect(worker.tokensPerMs).toBeCloseTo((0.98 * 300 + 100) / (0.98 * 50), 12);
  });

  test("learns nothing from a request that is cancelled while it waits or runs, and lets the next begin", () => {
    const running = book(1_000, 0);
    const waiting = book(1_000, 0);
    const last = book(10, 0);
    load.release(waiting, 5);
    expect([worker.headTokens, worker.headSinceMs]).toEqual([1_000, 0]);
    load.release(running, 9);
    expect([worker.tokensPerMs, worker.endedPrefills]).toEqual([0, 0]);
    expect([worker.headTokens, worker.headSinceMs]).toEqual([10, 9]);
    load.endPrefill(last, 14);
    expect(worker.tokensPerMs).toBe(2);
  });

  test("loses one sample when the clock is set back, and no more", () => {
    const prefills = [book(100, 1_000), book(100, 1_000), book(100, 1_000)];
    load.endPrefill(prefills[0] as LoadBooking, 500);
    expect([worker.tokensPerMs, worker.endedPrefills]).toEqual([0, 0]);
    load.endPrefill(prefills[1] as LoadBooking, 600);
    load.endPrefill(prefills[2] as LoadBooking, 700);
    expect([worker.tokensPerMs, worker.endedPrefills]).toEqual([1, 2]);
  });

  test("lets recent work fade to 1/e in a minute", () => {
    book(1_000, 0);
    book(500, 60_000);
    expect(worker.recentTokens).toBeCloseTo(1_000 / Math.E + 500, 9);
    load.advance(120_000);
    expect(worker.recentTokens).toBeCloseTo(1_000 / Math.E ** 2 + 500 / Math.E, 9);
    load.advance(0);
    expect(worker.recentTokens).toBeCloseTo(1_000 / Math.E ** 2 + 500 / Math.E, 9);
  });

  test("lets it fade as fast as it is told", () => {
    load = new BookedLoad(new MapBlockBook(), { recentMemoryMs: 10 });
    worker = load.open({ workerId: 1, dpRank: 0 });
    book(1_000, 0);
    load.advance(20);
    expect(worker.recentTokens).toBeCloseTo(1_000 / Math.E ** 2, 9);
  });

  test("moves the average of missed tokens by 1 % a request, from that of the first", () => {
    book(1_000, 0);
    expect(load.averageMissedTokens).toBe(1_000);
    book(2_000, 0);
    expect(load.averageMissedTokens).toBe(1_010);
  });

  test("counts no prefill of a request whose prefill is not tracked", () => {
    const booking = book(1_000, 5, { trackPrefill: false });
    const { activePrefills, activePrefillTokens, recentTokens, activeRequests, activeBlocks } = worker;
    expect([activePrefills, activePrefillTokens, recentTokens, load.averageMissedTokens]).toEqual([0, 0, 0, 0]);
    expect([activeRequests, activeBlocks]).toEqual([1, 2]);
    load.endPrefill(booking, 9);
    expect(worker.endedPrefills).toBe(0);
  });

  test("counts an output block as a whole one, or by a decay all blocks that nobody shares", () => {
    const one = book(10, 0, { sequenceHashes: hashes(1, 2, 3) });
    book(10, 0, { sequenceHashes: hashes(1) });
    load.addOutputBlock(one);
    expect(worker.activeBlocks).toBe(4);
    load.addOutputBlock(one, 0.5);
    expect(worker.activeBlocks).toBe(5 - 0.5 * (2 + 2));
    load.addOutputBlock(one, 1);
    expect(worker.activeBlocks).toBe(6);
    load.release(one, 1);
    expect(worker.activeBlocks).toBe(1);
  });

  test("adds no output to a request that was released", () => {
    const booking = book(10, 0);
    load.release(booking, 1);
    load.addOutputBlock(booking, 0.5);
    expect(worker.activeBlocks).toBe(0);
  });

  test("refuses a decay that is not a number from 0 to 1, and changes nothing", () => {
    const booking = book(10, 0);
    for (const decay of [-0.01, 1.01, Number.NaN]) {
      expect(() => load.addOutputBlock(booking, decay)).toThrow(
        expect.objectContaining({
          code: "KVROUTE_ARGUMENT_RANGE",
          message: `Expected decay to be a number from 0 to 1, got ${decay}.`,
        }),
      );
    }
    expect(worker.activeBlocks).toBe(2);
  });

  test("changes nothing when the table of blocks is full", () => {
    const full = new Error("full");
    load = new BookedLoad({
      book: () => {
        throw full;
      },
      settle: () => undefined,
      unbook: () => 0,
      sole: () => 0,
    });
    worker = load.open({ workerId: 1, dpRank: 0 });
    expect(() => book(10, 3)).toThrow(full);
    expect([load.bookings, load.averageMissedTokens, worker.activeRequests, worker.missedBlocks]).toEqual([0, 0, 0, 0]);
    expect([worker.activePrefills, worker.recentTokens, worker.activeBlocks]).toEqual([0, 0, 0]);
  });

  test("refuses a memory of recent work that is not above 0", () => {
    for (const recentMemoryMs of [0, -1, Number.NaN]) {
      expect(() => new BookedLoad(new MapBlockBook(), { recentMemoryMs })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected recentMemoryMs to be above 0, got ${recentMemoryMs}.`,
        }),
      );
    }
  });
});
