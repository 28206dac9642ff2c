import { hasChromium, launch } from "../../tests/browser/chromium.js";
import { servePages } from "../../tests/browser/server.js";
import type { Runtime, Sample } from "./contract.js";

const PAGE = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.mjs"></script>';

/** Chromium: a page each time that has nothing in its cache. The file comes over a connection to this machine. */
export async function chromium(project: string): Promise<Runtime[]> {
  if (!hasChromium) return [];
  const browser = await launch();
  const server = await servePages(project, { pages: { "/": PAGE }, headers: { "cache-control": "no-store" } });
  return [
    {
      name: `Chromium ${browser.version().split(".")[0]}`,
      async sample(what) {
        const context = await browser.newContext();
        try {
          const page = await context.newPage();
          await page.goto(`${server.url}/?${what}`);
          await page.waitForFunction(() => document.title !== "");
          return JSON.parse(await page.title()) as Sample;
        } finally {
          await context.close();
        }
      },
      async close() {
        await browser.close();
        await server.close();
      },
    },
  ];
}
