import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { hasChromium, launch, warnOfNoChromium } from "./chromium.js";
import { type PageServer, servePages } from "./server.js";

const project = inject("project");
warnOfNoChromium();

const DIST = "/node_modules/kvroute/dist";
const IMPORTS = {
  kvroute: `${DIST}/index.js`,
  "#core": `${DIST}/core/module.inline.js`,
  "@assemblyscript/loader": "/node_modules/@assemblyscript/loader/index.js",
};

/** A page that has made a router, and hands it to the test. */
const PAGE = `<!doctype html><title>kvroute</title><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
<script type="module">
  import { createRouter } from "kvroute";
  const fetch = async () => Response.json({ ok: true });
  const router = createRouter({ workers: [{ id: "a", url: "http://a" }], fetch });
  const body = JSON.stringify({ model: "m", messages: [] });
  const said = ({ code, message, cause }) => ({ code, message, cause: String(cause) });
  globalThis.ask = async () => {
    const request = router.fetch("/v1/chat/completions", { method: "POST", body });
    return request.then((response) => response.json(), said);
  };
  globalThis.router = router;
</script>`;

/** A service worker that answers what the page asks a server for. It may import, but not later. */
const SERVICE_WORKER = `import { createRouter } from "${DIST}/kvroute.browser.js";
const fetch = async () => Response.json({ ok: true });
const router = createRouter({ workers: [{ id: "a", url: "http://a" }], fetch });
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (new URL(event.request.url).pathname.startsWith("/v1/")) event.respondWith(router.handler(event.request));
});`;

type Answer = { readonly ok?: boolean; readonly code?: string; readonly message?: string; readonly cause?: string };
declare const ask: () => Promise<Answer>;

describe.skipIf(!hasChromium)("a page with the packed package", () => {
  let browser: Browser;
  let server: PageServer;

  beforeAll(async () => {
    browser = await launch();
    server = await servePages(project, { pages: { "/": PAGE, "/service-worker.js": SERVICE_WORKER } });
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** Opens the page, and lists the files that it has fetched. */
  async function open(): Promise<{ readonly page: Page; readonly files: string[] }> {
    const page = await browser.newPage();
    const files: string[] = [];
    page.on("request", (request) => files.push(new URL(request.url()).pathname));
    await page.goto(server.url);
    await page.waitForFunction(() => "router" in globalThis);
    return { page, files };
  }

  const isDesk = (file: string) => file === join(DIST, "desk.js");

  test("fetches what requests need with the first of them, once for all that come at once", async () => {
    const { page, files } = await open();
    expect(files.filter(isDesk)).toEqual([]);
    const answers = await page.evaluate(() => Promise.all(Array.from({ length: 100 }, () => ask())));
    expect(answers).toEqual(new Array(100).fill({ ok: true }));
    expect(files.filter(isDesk)).toHaveLength(1);
    const before = files.length;
    expect(await page.evaluate(() => ask())).toEqual({ ok: true });
    expect(files).toHaveLength(before);
    await page.close();
  });

  test("says so where it cannot be fetched, and is served once it can", async () => {
    const { page, files } = await open();
    await page.context().setOffline(true);
    const lost = await page.evaluate(() => Promise.all([ask(), ask()]));
    for (const answer of lost) {
      expect(answer).toMatchObject({
        code: "KVROUTE_GATEWAY_NOT_LOADED",
        cause: expect.stringMatching(/^TypeError: /),
      });
    }
    await page.context().setOffline(false);
    expect(await page.evaluate(() => ask())).toEqual({ ok: true });
    expect(files.filter(isDesk).length).toBeGreaterThan(1);
    await page.close();
  });

  test("has a router in its service worker, of the self-contained file", async () => {
    const { page } = await open();
    const answer = await page.evaluate(async () => {
      const controlled = new Promise((resolve) =>
        navigator.serviceWorker.addEventListener("controllerchange", resolve),
      );
      await navigator.serviceWorker.register("/service-worker.js", { type: "module" });
      await controlled;
      const response = await fetch("/v1/chat/completions", { method: "POST", body: '{"model":"m","messages":[]}' });
      return { worker: response.headers.get("x-kvroute-worker"), body: await response.json() };
    });
    expect(answer).toEqual({ worker: "a", body: { ok: true } });
    await page.close();
  });
});
