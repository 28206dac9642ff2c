import { coreCases } from "./portable/core.js";
import { disaggCases } from "./portable/disagg.js";
import { eventCases } from "./portable/events.js";
import { hashingCases } from "./portable/hashing.js";
import { httpCases } from "./portable/http.js";
import { type Case, type Modules, Skip } from "./portable/parts.js";
import { routerCases } from "./portable/router.js";
import { selectionCases } from "./portable/selection.js";

// The suite that runs in every runtime. It imports nothing of the package: each host hands over what it imported by the
// package's name, in its own way. It needs ECMAScript and the Web's APIs, no test framework and no file.

export type { Modules };

/** What became of the cases. */
export interface Report {
  readonly runtime: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** A line for each failure and each case that was skipped. */
  readonly lines: readonly string[];
}

const cases: readonly Case[] = [
  ...coreCases,
  ...hashingCases,
  ...selectionCases,
  ...eventCases,
  ...disaggCases,
  ...httpCases,
  ...routerCases,
];

/** Runs every case on the modules of a host, one after the other. */
export async function runPortable(modules: Modules): Promise<Report> {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const lines: string[] = [];
  for (const { name, run } of cases) {
    try {
      await run(modules);
      counts.passed++;
    } catch (error) {
      const isSkipped = error instanceof Skip;
      counts[isSkipped ? "skipped" : "failed"]++;
      lines.push(`${isSkipped ? "skipped" : "FAILED"} ${name}: ${isSkipped ? error.message : textOf(error)}`);
    }
  }
  return { runtime: runtimeName(), ...counts, lines };
}

/** The lines that a host prints: what did not pass, and the sum last. */
export function printed(report: Report): string {
  const { runtime, passed, failed, skipped, lines } = report;
  const rest = skipped > 0 ? `, ${skipped} skipped` : "";
  return [...lines, `${runtime}: ${passed} passed, ${failed} failed${rest}`].join("\n");
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error);
}

interface Globals {
  readonly Deno?: { readonly version: { readonly deno: string } };
  readonly Bun?: { readonly version: string };
  readonly EdgeRuntime?: string;
  readonly process?: { readonly versions?: { readonly node?: string } };
  readonly navigator?: { readonly userAgent?: string };
}

/** Names the runtime and its version, as far as it tells. */
function runtimeName(): string {
  const { Deno, Bun, EdgeRuntime, process, navigator } = globalThis as Globals;
  if (Deno !== undefined) return `Deno ${Deno.version.deno}`;
  if (Bun !== undefined) return `Bun ${Bun.version}`;
  if (EdgeRuntime !== undefined) return "Edge runtime";
  const agent = navigator?.userAgent ?? "";
  const chrome = /Chrome\/([\d.]+)/.exec(agent)?.[1];
  if (chrome !== undefined) return `Chromium ${chrome}`;
  if (agent === "Cloudflare-Workers") return "workerd";
  return process?.versions?.node === undefined ? "an unknown runtime" : `Node ${process.versions.node}`;
}
