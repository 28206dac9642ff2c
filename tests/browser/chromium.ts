import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Where Debian's package puts it; CHROMIUM names another. */
const programOf = (env: Readonly<Record<string, string | undefined>>) => env["CHROMIUM"] || "/usr/bin/chromium";

/** Finds the browser. Where there is none, gives the line that says so; its tests are counted as skipped. */
export function findChromium(
  env: Readonly<Record<string, string | undefined>> = process.env,
  exists: (file: string) => boolean = existsSync,
): { readonly program: string } | { readonly missing: string } {
  const program = programOf(env);
  if (exists(program)) return { program };
  return { missing: `SKIPPED: no browser here, as there is no Chromium at ${program}; CHROMIUM names another.` };
}

const found = findChromium();

/** Whether there is a browser. */
export const hasChromium = "program" in found;

/** Says that there is none, in one line, where that is so. */
export function warnOfNoChromium(): void {
  if ("missing" in found) console.warn(found.missing);
}

const ARGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking"];

export function launch(): Promise<Browser> {
  if ("missing" in found) throw new Error(found.missing);
  return chromium.launch({ executablePath: found.program, args: ARGS, headless: true });
}
