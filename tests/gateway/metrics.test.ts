import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTED_PATHS, COUNTED_STATUSES, GatewayMetrics } from "../../src/gateway/metrics.js";
import { RETRY_REASONS } from "../../src/gateway/retry-options.js";
import { scaled } from "../support/scale.js";

const keyOf = (path: string, status: number): string => {
  const kind = Number.isFinite(status) && status >= 100 && status < 600 ? `${String(status).charAt(0)}xx` : "other";
  const label = COUNTED_STATUSES.includes(status) ? `${status}` : kind;
  return `${COUNTED_PATHS.includes(path) ? path : "other"} ${label}`;
};

describe("the metrics of a gateway", () => {
  test("count requests by path and status", () => {
    const path = fc.oneof(fc.constantFrom(...COUNTED_PATHS), fc.string(), fc.constantFrom("__proto__", "constructor"));
    const status = fc.oneof(fc.constantFrom(...COUNTED_STATUSES), fc.integer({ min: -5, max: 1_200 }));
    fc.assert(
      fc.property(fc.array(fc.tuple(path, status)), (ends) => {
        const metrics = new GatewayMetrics();
        const naive: Record<string, number> = {};
        for (const [path, status] of ends) {
          metrics.ended(path, status, 1);
          naive[keyOf(path, status)] = (naive[keyOf(path, status)] ?? 0) + 1;
        }
        const { requests, timings } = metrics.snapshot();
        expect(Object.fromEntries(requests.map(({ path, status, count }) => [`${path} ${status}`, count]))).toEqual(
          naive,
        );
        expect([timings.request.count, timings.request.sum]).toEqual([ends.length, ends.length]);
      }),
      { numRuns: scaled(500) },
    );
  });

  test("hold a bounded number of counters, whatever clients ask for and engines answer", () => {
    const metrics = new GatewayMetrics();
    for (let number = 0; number < 20_000; number++) {
      metrics.ended(number % 2 === 0 ? `/v1/${number}` : "/v1/completions", Math.floor(number / 2) % 1_000, 0);
    }
    const most = COUNTED_STATUSES.length + 6;
    expect(metrics.snapshot().requests.length).toBe(2 * most);
  });

  test("count decisions and reasons of retries, those that never came as 0", () => {
    const metrics = new GatewayMetrics();
    metrics.decided("retain");
    metrics.decided("retain");
    metrics.decided("spill");
    metrics.retried("connect");
    const { decisions, retries } = metrics.snapshot();
    expect(decisions).toEqual({ initialize: 0, retain: 2, switch: 0, spill: 1 });
    expect(retries).toEqual(Object.fromEntries(RETRY_REASONS.map((reason) => [reason, reason === "connect" ? 1 : 0])));
  });

  test("share the time between chunks among their tokens", () => {
    const metrics = new GatewayMetrics();
    metrics.tokens(0.4, 4);
    metrics.tokens(1, 0);
    const { interToken } = metrics.snapshot().timings;
    expect([interToken.count, interToken.sum]).toEqual([4, 0.4]);
    expect(interToken.counts[interToken.bounds.indexOf(0.1)]).toBe(4);
  });

  test("keep the times apart", () => {
    const metrics = new GatewayMetrics();
    metrics.routed(1e-5);
    metrics.queued(2);
    metrics.firstToken(3);
    metrics.ended("/v1/models", 200, 5);
    const { routing, queue, ttft, request, interToken } = metrics.snapshot().timings;
    expect([routing.sum, queue.sum, ttft.sum, request.sum, interToken.sum]).toEqual([1e-5, 2, 3, 5, 0]);
    expect(routing.counts[0]).toBe(1);
  });

  test("sum what engines say of tokens", () => {
    const metrics = new GatewayMetrics();
    metrics.used({ promptTokens: 10, outputTokens: 2 });
    metrics.used({ promptTokens: 5 });
    metrics.used({});
    expect(metrics.snapshot().tokens).toEqual({ prompt: 15, output: 2 });
  });
});
