import Table from "cli-table3";
import type { DelaySummary, PolicyReport, ReplayReport, TimingReport } from "../sim/replay.js";

/** What a report says besides the figures of the replay. */
export interface ReportContext {
  /** What was replayed, as it was given. */
  readonly trace: string;
  /** What was replayed, for people. */
  readonly traceName: string;
  readonly workers: number;
  readonly blocksPerWorker: number | "infinite";
  readonly seed: number;
  /** Bad rows that were left out. */
  readonly skipped: number;
  readonly firstSkipped?: string | undefined;
}

/** A column of the table: its head, what it means, and what it says of a policy. */
interface Column {
  readonly head: string;
  readonly meaning: string;
  cell(report: PolicyReport): string;
}

const HIT_RATE: Column = {
  head: "hit rate",
  meaning: "prompt blocks found in the cache of the chosen worker: prefill that is not computed again",
  cell: ({ hitRate }) => `${(hitRate * 100).toFixed(2)} %`,
};

const IMBALANCE: Column = {
  head: "imbalance",
  meaning: "blocks computed by the busiest worker over the mean of all; 1.00 is even",
  cell: ({ imbalance }) => imbalance.toFixed(2),
};

const COLUMNS: readonly Column[] = [
  HIT_RATE,
  IMBALANCE,
  {
    head: "evictions",
    meaning: "blocks pushed out of full caches",
    cell: ({ evictions }) => formatCount(evictions),
  },
  {
    head: "blocks computed",
    meaning: "blocks that were not in the cache, over all workers",
    cell: ({ missedBlocks }) => formatCount(missedBlocks.reduce((total, blocks) => total + blocks, 0)),
  },
  {
    head: "requests/s",
    meaning: "speed of this replay, not of the workers",
    cell: ({ requestsPerSecond }) => formatCount(Math.round(requestsPerSecond)),
  },
];

const TIMED_COLUMNS: readonly Column[] = [
  HIT_RATE,
  IMBALANCE,
  {
    head: "in 60 s",
    meaning: "the same within windows of a minute, averaged",
    cell: ({ windowImbalance = 1 }) => windowImbalance.toFixed(2),
  },
  delayColumn("mean", "mean delay from the arrival of a request to the end of its prefill: waiting and computing"),
  delayColumn("p50", "half of the requests waited no longer"),
  delayColumn("p90", "nine of ten"),
  delayColumn("p99", "99 of a hundred"),
];

function delayColumn(head: keyof DelaySummary, meaning: string): Column {
  return { head, meaning, cell: ({ delayMs }) => formatDelay(delayMs?.[head] ?? 0) };
}

/** Writes a report for machines: one JSON object on one line. What takes no time says nothing of it. */
export function formatJson(report: ReplayReport, context: ReportContext): string {
  const { trace, workers, blocksPerWorker, seed, skipped } = context;
  const { requests, emptyRequests, timing } = report;
  const policies = report.policies.map((row) => {
    const { policy, hitRate, imbalance, windowImbalance, delayMs, evictions, missedBlocks } = row;
    const { requestsPerSecond, rejected } = row;
    const figures = { hitRate, imbalance, windowImbalance, delayMs, evictions, missedBlocks };
    return { policy, ...figures, requestsPerSecond, rejected };
  });
  const json = { trace, requests, workers, blocksPerWorker, timing, policies, seed, emptyRequests, skipped };
  return `${JSON.stringify(json)}\n`;
}

/** Writes a report for people: what was done, a table with a row for each policy, and what its columns mean. */
export function formatText(report: ReplayReport, context: ReportContext): string {
  const columns = report.timing === undefined ? COLUMNS : TIMED_COLUMNS;
  const table = new Table({
    head: ["policy", ...columns.map(({ head }) => head)],
    colAligns: ["left", ...columns.map(() => "right" as const)],
    style: { compact: true, head: [], border: [] }, // no colour
  });
  table.push(...report.policies.map((row) => [row.policy, ...columns.map((column) => column.cell(row))]));
  const width = Math.max(...columns.map(({ head }) => head.length)) + 2;
  const legend = columns.map(({ head, meaning }) => `${head.padEnd(width)}${meaning}\n`).join("");
  return `${formatHeader(report, context)}\n${table.toString()}\n\n${legend}${formatNotes(report, context)}`;
}

function formatHeader(report: ReplayReport, { traceName, workers, blocksPerWorker }: ReportContext): string {
  const requests = quantity(report.requests, "request");
  const content = `${quantity(report.blocks, "prompt block")}, ${formatDuration(report.durationMs)} of traffic`;
  const isUnlimited = blocksPerWorker === "infinite";
  const cache = isUnlimited ? "an unlimited KV cache" : `a KV cache of ${quantity(blocksPerWorker, "block")}`;
  const fleet = `${quantity(workers, "worker")}, each with ${cache}`;
  const lines = `Replayed ${requests} (${content}) from ${traceName}\non ${fleet}, once for every routing policy.\n`;
  return report.timing === undefined ? lines : lines + formatTiming(report.timing);
}

function formatTiming({ prefillRate, utilisation, decodeMsPerToken, closedLoop, hold, unit }: TimingReport): string {
  const rate = quantity(Math.round(prefillRate), unit);
  const busy = utilisation === undefined ? "" : `, so that taking turns would keep it ${percent(utilisation)} busy`;
  const answers = `An answer takes ${decodeMsPerToken} ms a token`;
  const loop = closedLoop ? ", and the next request of a session waits for it" : "";
  const held = hold ? "Requests are held until a worker is free, least to compute first.\n" : "";
  return `Each worker prefills ${rate} a second${busy}.\n${answers}${loop}.\n${held}`;
}

/** Lists what a reader should know before trusting the table. */
function formatNotes(report: ReplayReport, context: ReportContext): string {
  const rejected = Math.max(0, ...report.policies.map((policy) => policy.rejected));
  const notes: string[] = [];
  if (report.emptyRequests > 0) {
    notes.push(`${quantity(report.emptyRequests, "request")} without a full block: routed, but nothing to cache.`);
  }
  if (rejected > 0) {
    notes.push(`${quantity(rejected, "request")} with more blocks than the cache of a worker: rejected, not counted.`);
  }
  if (context.skipped > 0) {
    notes.push(`${quantity(context.skipped, "bad row")} skipped, the first: ${context.firstSkipped ?? "unknown"}`);
  }
  return notes.length === 0 ? "" : `\n${notes.join("\n")}\n`;
}

/** Writes a whole number with a comma between thousands, the same in every locale. */
export function formatCount(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(part: number): string {
  return `${Number((part * 100).toFixed(1))} %`;
}

/** Writes a delay in seconds, with three digits or all of its whole ones. */
function formatDelay(ms: number): string {
  const seconds = ms / 1000;
  const digits = seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0;
  return `${digits === 0 ? formatCount(Math.round(seconds)) : seconds.toFixed(digits)} s`;
}

function quantity(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
