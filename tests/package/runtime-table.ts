import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The README's table of runtimes. Each test leaves a row behind; when all have run, rows that changed are replaced, and
// rows of runtimes that are missing here stay as the last run wrote them.

const folder = fileURLToPath(new URL("../../build/runtime-rows/", import.meta.url));
const readme = fileURLToPath(new URL("../../README.md", import.meta.url));

/** The table's rows, in its order. */
export const ROWS = [
  "Node 20",
  "Node 22",
  "Node 24",
  "Node 26",
  "Node, worker thread",
  "Deno",
  "Bun",
  "Cloudflare workerd",
  "Vercel edge runtime",
  "Chromium, no bundler",
  "Chromium, import map",
  "Chromium, built by Vite",
  "Chromium, Web Worker",
] as const;

export interface Row {
  readonly runtime: (typeof ROWS)[number];
  readonly version: string;
  readonly core: string;
  readonly result: string;
}

/** Leaves a row behind. */
export function leaveRow(row: Row): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}${ROWS.indexOf(row.runtime)}.json`, JSON.stringify(row));
}

const TABLE = /(<!-- runtimes -->\n)([\s\S]*?)(<!-- \/runtimes -->)/;
const HEAD = "| runtime | version | how the core is loaded | the suite |\n|---|---|---|---|\n";

/** Puts the rows that were left into the README, where they differ from what stands there. */
export function writeRuntimeTable(): void {
  const text = readFileSync(readme, "utf8");
  const written = text.replace(TABLE, (_, open: string, table: string, close: string) => {
    return open + HEAD + ROWS.map((_, index) => left(index) ?? standing(table, index)).join("") + close;
  });
  rmSync(folder, { recursive: true, force: true });
  if (written !== text) writeFileSync(readme, written);
}

function left(index: number): string | undefined {
  if (!filesLeft().includes(`${index}.json`)) return undefined;
  const { runtime, version, core, result } = JSON.parse(readFileSync(`${folder}${index}.json`, "utf8")) as Row;
  return `| ${runtime} | ${version} | ${core} | ${result} |\n`;
}

function filesLeft(): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function standing(table: string, index: number): string {
  const row = table.split("\n").find((line) => line.startsWith(`| ${ROWS[index]} |`));
  return row === undefined ? "" : `${row}\n`;
}
