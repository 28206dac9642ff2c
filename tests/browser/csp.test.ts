import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { hasChromium, launch } from "./chromium.js";
import { servePages } from "./server.js";

const project = inject("project");

const PAGE = '<!doctype html><title>kvroute</title><script type="module" src="/csp.js"></script><pre></pre>';

describe.skipIf(!hasChromium)("a page with a content security policy", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });

  afterAll(() => browser?.close());

  /** What the page says of each way to a pool under a policy. */
  async function outcome(policy: string): Promise<Record<string, string>> {
    const headers = { "content-security-policy": policy };
    const server = await servePages(project, { pages: { "/": PAGE }, headers });
    const tab = await browser.newPage();
    try {
      await tab.goto(server.url);
      const text = await tab.waitForFunction(() => document.querySelector("pre")?.textContent);
      return JSON.parse((await text.jsonValue()) ?? "");
    } finally {
      await tab.close();
      await server.close();
    }
  }

  test("that allows wasm-unsafe-eval has pools, by whichever way the core is compiled", async () => {
    const all = { lazily: "pool", compileCore: "pool", streaming: "pool", cache: "0" };
    expect(await outcome("default-src 'self'; script-src 'self' 'wasm-unsafe-eval'")).toEqual(all);
  });

  test("that does not has none, and each error says what it lacks; what needs no core works", async () => {
    const { cache, streaming, ...ways } = await outcome("default-src 'self'; script-src 'self'");
    expect(Object.keys(ways)).toEqual(["lazily", "compileCore"]);
    for (const said of Object.values(ways)) {
      expect(said).toMatch(/^KVROUTE_CORE_UNAVAILABLE: .*(wasm-unsafe-eval|Content Security Policy)/);
    }
    expect(streaming).toMatch(/Content Security Policy/); // the browser's own word: nothing of kvroute was called
    expect(cache).toBe("0");
  });
});
