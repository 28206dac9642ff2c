import Table from "cli-table3";
import type { PolicyReport, ReplayReport } from "../sim/replay.js";

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

const HEAD = ["policy", "hit rate", "imbalance", "evictions", "blocks computed", "requests/s"];

const LEGEND = `
hit rate         prompt blocks found in the cache of the chosen worker: prefill that is not computed again
imbalance        blocks computed by the busiest worker over the mean of all; 1.00 is even
evictions        blocks pushed out of full caches
blocks computed  blocks that were not in the cache, over all workers
requests/s       speed of this replay, not of the workers
`;

/** Writes a report for machines: one JSON object on one line. */
export function formatJson(report: ReplayReport, context: ReportContext): string {
  const { trace, workers, blocksPerWorker, seed, skipped } = context;
  const { requests, emptyRequests } = report;
  const policies = report.policies.map(
    ({ policy, hitRate, imbalance, evictions, missedBlocks, requestsPerSecond, rejected }) => {
      return { policy, hitRate, imbalance, evictions, missedBlocks, requestsPerSecond, rejected };
    },
  );
  const json = { trace, requests, workers, blocksPerWorker, policies, seed, emptyRequests, skipped };
  return `${JSON.stringify(json)}\n`;
}

/** Writes a report for people: what was done, a table with a row for each policy, and what its columns mean. */
export function formatText(report: ReplayReport, context: ReportContext): string {
  const table = new Table({
    head: HEAD,
    colAligns: ["left", "right", "right", "right", "right", "right"],
    style: { compact: true, head: [], border: [] }, // no colour
  });
  table.push(...report.policies.map(formatRow));
  return `${formatHeader(report, context)}\n${table.toString()}\n${LEGEND}${formatNotes(report, context)}`;
}

function formatHeader(report: ReplayReport, { traceName, workers, blocksPerWorker }: ReportContext): string {
  const requests = quantity(report.requests, "request");
  const content = `${quantity(report.blocks, "prompt block")}, ${formatDuration(report.durationMs)} of traffic`;
  const isUnlimited = blocksPerWorker === "infinite";
  const cache = isUnlimited ? "an unlimited KV cache" : `a KV cache of ${quantity(blocksPerWorker, "block")}`;
  const fleet = `${quantity(workers, "worker")}, each with ${cache}`;
  return `Replayed ${requests} (${content}) from ${traceName}\non ${fleet}, once for every routing policy.\n`;
}

function formatRow(report: PolicyReport): string[] {
  return [
    report.policy,
    `${(report.hitRate * 100).toFixed(2)} %`,
    report.imbalance.toFixed(2),
    formatCount(report.evictions),
    formatCount(report.missedBlocks.reduce((total, blocks) => total + blocks, 0)),
    formatCount(Math.round(report.requestsPerSecond)),
  ];
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

function quantity(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
