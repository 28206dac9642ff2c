import type { HistogramSnapshot } from "../gateway/histogram.js";
import type { Router } from "../gateway/router.js";
import type { RouterStats, RouterWorkerStats } from "../gateway/stats.js";

// Written by hand: the usual client keeps a registry of its own beside the figures that are here already, and reads the
// process and its clocks, which runtimes at the edge do not have.

/** What the text is to be sent as. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;

/** A figure, and what tells it from the others of its name. */
type Sample = readonly [value: number, labels?: Labels];

interface Family {
  /** Without `kvroute_`. */
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly samples: (stats: RouterStats) => readonly Sample[];
}

interface HistogramFamily {
  readonly name: string;
  readonly help: string;
  readonly of: (stats: RouterStats) => HistogramSnapshot;
}

/** How the states of a breaker are written as numbers. */
const BREAKER_STATES = { closed: 0, "half-open": 1, open: 2 } as const;

const HISTOGRAMS: readonly HistogramFamily[] = [
  { name: "request_seconds", help: "A request from end to end.", of: ({ timings }) => timings.request },
  { name: "ttft_seconds", help: "From a request to the first token of a stream.", of: ({ timings }) => timings.ttft },
  { name: "inter_token_seconds", help: "From one token to the next.", of: ({ timings }) => timings.interToken },
  { name: "routing_seconds", help: "What the router adds to a request.", of: ({ timings }) => timings.routing },
  {
    name: "queue_seconds",
    help: "What requests waited that had to, and got a worker.",
    of: ({ timings }) => timings.queue,
  },
];

const FAMILIES: readonly Family[] = [
  counter("requests_total", "Requests that have ended.", ({ requests }) =>
    requests.map(({ path, status, count }) => [count, { path, status }]),
  ),
  counter("outcomes_total", "How requests ended that were at workers, each once.", ({ outcomes }) =>
    byKey(outcomes, "outcome"),
  ),
  gauge("requests_in_flight", "Requests at workers.", ({ inFlight }) => [[inFlight]]),
  counter("decisions_total", "What became of the workers of sessions.", ({ decisions }) => byKey(decisions, "kind")),
  counter("retries_total", "Tries behind the first.", ({ retries }) => byKey(retries, "reason")),
  counter("failed_cancels_total", "Answers of workers that could not be cancelled.", ({ failedCancels }) => [
    [failedCancels],
  ]),

  counter("prompt_tokens_total", "Tokens of prompts, as engines count them.", ({ tokens }) => [[tokens.prompt]]),
  counter("output_tokens_total", "Tokens of answers, as engines count them.", ({ tokens }) => [[tokens.output]]),
  counter(
    "cached_tokens_total",
    "Tokens of prompts that engines found cached.",
    ofWorkers((one) => one.cachedTokens),
  ),
  counter(
    "predicted_cached_tokens_total",
    "Tokens of the same prompts that were believed to be cached.",
    ofWorkers((one) => one.predictedCachedTokens),
  ),

  gauge("queue_length", "Requests that wait for a worker.", ({ queue }) => [[queue.waiting]]),
  counter("admissions_total", "What became of requests that came for a worker.", ({ queue }) => [
    [queue.admittedAtOnce, { outcome: "at_once" }],
    [queue.admittedAfterWaiting, { outcome: "waited" }],
    [queue.refused, { outcome: "refused" }],
    [queue.timedOut, { outcome: "timed_out" }],
    [queue.cancelled, { outcome: "cancelled" }],
    [queue.failed, { outcome: "failed" }],
  ]),

  counter(
    "worker_requests_total",
    "Requests that a worker was given.",
    ofWorkers((one) => one.requests),
  ),
  gauge(
    "worker_in_flight",
    "Requests at a worker.",
    ofWorkers((one) => one.inFlight),
  ),
  gauge(
    "worker_active_prefill_tokens",
    "Tokens of prompts that a worker has yet to compute.",
    ofWorkers((one) => one.activePrefillTokens),
  ),
  gauge(
    "worker_active_blocks",
    "Blocks that requests have in use at a worker.",
    ofWorkers((one) => one.activeBlocks),
  ),
  gauge(
    "worker_draining",
    "1 where a worker gets no more requests.",
    ofWorkers((one) => Number(one.isDraining)),
  ),
  gauge("worker_healthy", "1 where health checks pass, 0 where they fail.", ofWorkers(healthOf)),
  gauge(
    "worker_breaker_state",
    "0 where the circuit breaker is closed, 1 where it is half-open, 2 where it is open.",
    ofWorkers(({ breaker }) => breaker && BREAKER_STATES[breaker.state]),
  ),
  counter(
    "breaker_openings_total",
    "How often a worker's circuit breaker has opened.",
    ofWorkers(({ breaker }) => breaker?.openings),
  ),

  gauge("leases", "Bookings of requests at workers.", ({ selection }) => [[selection.bookings]]),
  counter("leases_expired_total", "Bookings of which nothing was heard.", ({ selection }) => [
    [selection.expiredBookings],
  ]),
  counter("leases_lost_total", "Bookings that ended with their worker.", ({ selection }) => [[selection.lostBookings]]),
  gauge("sessions", "Sessions whose worker is known.", ({ selection }) => [[selection.sessions]]),
  gauge("index_blocks", "Different blocks in the index.", ({ selection }) => [[selection.index.blocks]]),
  gauge("index_entries", "Pairs of block and worker in the index.", ({ selection }) => [[selection.index.entries]]),
  counter("index_dropped_total", "Entries that went by themselves.", ({ selection: { dropped } }) => [
    [dropped.indexEntries.evicted, { cause: "evicted" }],
    [dropped.indexEntries.expired, { cause: "expired" }],
  ]),

  counter("prediction_reports_total", "Reports of cached tokens.", ({ prediction }) => [[prediction.reports]]),
  gauge("prediction_error_tokens", "Cached less predicted tokens of a request, in the mean.", ({ prediction }) => [
    [prediction.meanErrorTokens],
  ]),
  gauge("prediction_absolute_error_tokens", "The same without signs.", ({ prediction }) => [
    [prediction.meanAbsoluteErrorTokens],
  ]),
  gauge("prediction_share", "Part of the tokens of prompts, in the mean.", ({ prediction }) => [
    [prediction.predictedShare, { kind: "predicted" }],
    [prediction.actualShare, { kind: "actual" }],
  ]),
  gauge("prediction_mismatch", "1 while the two shares differ as they should not.", ({ prediction }) => [
    [Number(prediction.isMismatched)],
  ]),
  counter("prediction_mismatches_total", "How often that has begun.", ({ prediction }) => [[prediction.mismatches]]),
];

/** Writes how a router stands in the text format of Prometheus, version 0.0.4. */
export function metricsText(stats: RouterStats): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of FAMILIES) {
    lines.push(`# HELP kvroute_${name} ${help}`, `# TYPE kvroute_${name} ${type}`);
    for (const [value, labels] of samples(stats)) lines.push(sampleLine(name, value, labels));
  }
  for (const { name, help, of } of HISTOGRAMS) {
    lines.push(`# HELP kvroute_${name} ${help}`, `# TYPE kvroute_${name} histogram`);
    pushHistogram(lines, name, of(stats));
  }
  return `${lines.join("\n")}\n`;
}

/** Answers with the metrics of a router. */
export function metricsResponse(router: Pick<Router, "stats">): Response {
  return new Response(metricsText(router.stats()), { headers: { "content-type": METRICS_CONTENT_TYPE } });
}

function counter(name: string, help: string, samples: Family["samples"]): Family {
  return { name, type: "counter", help, samples };
}

function gauge(name: string, help: string, samples: Family["samples"]): Family {
  return { name, type: "gauge", help, samples };
}

/** A figure of each worker of which it is known. */
function ofWorkers(figureOf: (worker: RouterWorkerStats) => number | undefined): Family["samples"] {
  return ({ workers }) =>
    workers.flatMap((worker) => {
      const figure = figureOf(worker);
      return figure === undefined ? [] : [[figure, { worker: worker.id }] as const];
    });
}

function healthOf({ isHealthy }: RouterWorkerStats): number | undefined {
  return isHealthy === undefined ? undefined : Number(isHealthy);
}

function byKey(counts: Readonly<Record<string, number>>, label: string): readonly Sample[] {
  return Object.entries(counts).map(([key, count]) => [count, { [label]: key }]);
}

function pushHistogram(lines: string[], name: string, { bounds, counts, sum, count }: HistogramSnapshot): void {
  let below = 0;
  for (const [bucket, bound] of [...bounds, "+Inf"].entries()) {
    below += counts[bucket] as number; // each bucket of the format has all that lies below its end
    lines.push(sampleLine(`${name}_bucket`, below, { le: String(bound) }));
  }
  lines.push(sampleLine(`${name}_sum`, sum), sampleLine(`${name}_count`, count));
}

function sampleLine(name: string, value: number, labels: Labels = {}): string {
  const written = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return written.length === 0 ? `kvroute_${name} ${value}` : `kvroute_${name}{${written.join(",")}} ${value}`;
}

function escaped(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
