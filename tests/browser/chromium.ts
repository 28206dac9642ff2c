import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Where Debian's package puts it; CHROMIUM names another. */
const PROGRAM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Whether there is a browser. Where there is none, one line says so and its tests are counted as skipped. */
export const hasChromium = existsSync(PROGRAM);

const ARGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking"];

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: PROGRAM, args: ARGS, headless: true });
}
