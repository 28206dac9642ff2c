import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRouter } from "../../src/gateway/router.js";
import type { RouterStats } from "../../src/gateway/stats.js";
import { metricsResponse, metricsText } from "../../src/http/metrics.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { scaled } from "../support/scale.js";
import { type Family, parsePrometheus, type Sample } from "./prometheus.js";

const page = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");

/** A router whose workers have these ids, and which has served nothing. */
function routerOf(ids: readonly string[]) {
  const workers = ids.map((id) => ({ id, url: "http://127.0.0.1:1" }));
  return createRouter({ workers, clock: new VirtualClock(), random: () => 0.5 });
}

/** The stats of a router that has seen something of everything. */
function statsOf(ids: readonly string[] = ["w1", "w2"]): RouterStats {
  const stats = routerOf(ids).stats();
  const [first, ...others] = stats.workers;
  const histogram = { bounds: [0.00001, 0.5], counts: [3, 2, 1], sum: 7.25, count: 6 };
  const { routing, ttft, interToken, queue, request } = stats.timings;
  return {
    ...stats,
    requests: [
      { path: "/v1/chat/completions", status: "200", count: 5 },
      { path: "other", status: "5xx", count: 1 },
    ],
    decisions: { initialize: 1, retain: 2, switch: 3, spill: 4 },
    queue: { ...stats.queue, waiting: 4, admittedAfterWaiting: 7, refused: 2, timedOut: 1 },
    timings: { routing: { ...routing, ...histogram }, ttft, interToken, queue, request },
    prediction: { ...stats.prediction, reports: 9, meanErrorTokens: -1.5e-7, isMismatched: true },
    workers: [
      {
        ...(first as RouterStats["workers"][number]),
        isHealthy: false,
        breaker: { state: "open", openings: 3 },
        cachedTokens: 10,
        predictedCachedTokens: 12,
      },
      ...others,
    ],
  };
}

const find = (families: readonly Family[], name: string) => families.find((family) => family.name === name);

function samplesOf(text: string, name: string): Omit<Sample, "name">[] {
  return (find(parsePrometheus(text), name)?.samples ?? []).map(({ labels, value }) => ({ labels, value }));
}

describe("the text", () => {
  test("is in the format of Prometheus, of a router that has seen nothing as of one that has seen all", () => {
    for (const stats of [routerOf([]).stats(), routerOf(["w"]).stats(), statsOf()]) {
      expect(parsePrometheus(metricsText(stats)).length).toBeGreaterThan(30);
    }
  });

  test("has each figure where it belongs", () => {
    const text = metricsText(statsOf());
    expect(samplesOf(text, "kvroute_requests_total")).toEqual([
      { labels: { path: "/v1/chat/completions", status: "200" }, value: 5 },
      { labels: { path: "other", status: "5xx" }, value: 1 },
    ]);
    expect(samplesOf(text, "kvroute_decisions_total")).toEqual(
      ["initialize", "retain", "switch", "spill"].map((kind, at) => ({ labels: { kind }, value: at + 1 })),
    );
    expect(samplesOf(text, "kvroute_queue_length")).toEqual([{ labels: {}, value: 4 }]);
    expect(samplesOf(text, "kvroute_admissions_total").map(({ value }) => value)).toEqual([0, 7, 2, 1, 0, 0]);
    expect(samplesOf(text, "kvroute_prediction_error_tokens")).toEqual([{ labels: {}, value: -1.5e-7 }]);
    expect(samplesOf(text, "kvroute_prediction_mismatch")).toEqual([{ labels: {}, value: 1 }]);
    expect(samplesOf(text, "kvroute_worker_breaker_state")).toEqual([
      { labels: { worker: "w1" }, value: 2 },
      { labels: { worker: "w2" }, value: 0 },
    ]);
    expect(samplesOf(text, "kvroute_worker_healthy")).toEqual([{ labels: { worker: "w1" }, value: 0 }]); // w2: not asked
    expect(samplesOf(text, "kvroute_breaker_openings_total")[0]).toEqual({ labels: { worker: "w1" }, value: 3 });
    expect(samplesOf(text, "kvroute_cached_tokens_total")[0]?.value).toBe(10);
    expect(samplesOf(text, "kvroute_predicted_cached_tokens_total")[0]?.value).toBe(12);
  });

  test("adds the buckets of a histogram up", () => {
    const family = find(parsePrometheus(metricsText(statsOf())), "kvroute_routing_seconds");
    expect(family?.samples.map(({ labels, value }) => [labels["le"], value])).toEqual([
      ["0.00001", 3],
      ["0.5", 5],
      ["+Inf", 6],
      [undefined, 7.25],
      [undefined, 6],
    ]);
  });

  test("gives ids back as they are, whatever stands in them", () => {
    const id = fc.oneof(
      fc.string({ minLength: 1, maxLength: 20 }),
      fc.string({ unit: fc.constantFrom('"', "\\", "\n", "n", "{", "}", ",", "=", " ", "é", "\r"), minLength: 1 }),
    );
    const ids = fc.uniqueArray(id, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(ids, (ids) => {
        const samples = samplesOf(metricsText(routerOf(ids).stats()), "kvroute_worker_in_flight");
        expect(samples.map(({ labels }) => labels["worker"])).toEqual(ids);
      }),
      { numRuns: scaled(200) },
    );
  });

  test("is answered with its type", async () => {
    const router = routerOf(["w"]);
    const response = metricsResponse(router);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await response.text()).toBe(metricsText(router.stats()));
  });
});

describe("the page", () => {
  const rows = [...page.matchAll(/^\| `(kvroute_\w+)` \| (\w+) \| ([^|]*)\| [^|]+ \|$/gm)].map(
    ([, name, type, labels]) => ({
      name,
      type,
      labels: [...(labels as string).matchAll(/`(\w+)`/g)].map(([, label]) => label).sort(),
    }),
  );

  test("lists every metric with its type and its labels, and none that is not there", () => {
    const served = parsePrometheus(metricsText(statsOf())).map(({ name, type, samples }) => {
      const labels = new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
      labels.delete("le"); // of every histogram
      return { name, type, labels: [...labels].sort() };
    });
    const byName = (left: { name?: string | undefined }, right: { name?: string | undefined }) =>
      String(left.name) < String(right.name) ? -1 : 1;
    expect(rows.sort(byName)).toEqual(served.sort(byName));
  });

  test("asks in its questions for metrics that there are", () => {
    const names = new Set(rows.map(({ name }) => name));
    const asked = [...page.matchAll(/kvroute_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""));
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
  });
});

test.each([
  ["no end of the last line", "# HELP a b\n# TYPE a gauge\na 1"],
  ["a label without quotation marks", "# HELP a b\n# TYPE a gauge\na{b=c} 1\n"],
  ["an unknown escape", '# HELP a b\n# TYPE a gauge\na{b="\\t"} 1\n'],
  ["a series twice", "# HELP a b\n# TYPE a gauge\na 1\na 1\n"],
  ["a family twice", "# HELP a b\n# TYPE a gauge\n# HELP a b\n# TYPE a gauge\n"],
  ["a sample of another family", "# HELP a b\n# TYPE a gauge\nb 1\n"],
  ["a value that is no number", "# HELP a b\n# TYPE a gauge\na one\n"],
  [
    "buckets that are not added up",
    '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
  ],
  ["a histogram with an end", '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_sum 1\na_count 2\n'],
])("the parser of these tests refuses %s", (_, text) => {
  expect(() => parsePrometheus(text)).toThrow();
});
