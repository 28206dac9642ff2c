import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { hasChromium, launch } from "./chromium.js";
import { type PageServer, servePages } from "./server.js";

const project = inject("project");

describe.skipIf(!hasChromium)("examples/browser", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page;
  const errors: string[] = [];

  beforeAll(async () => {
    cpSync(fileURLToPath(new URL("../../examples/browser", import.meta.url)), join(project, "page"), {
      recursive: true,
    });
    server = await servePages(project);
    browser = await launch();
    page = await browser.newPage({ viewport: { width: 1_000, height: 800 } });
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(`${server.url}/page/index.html`);
    await set("rate", 0); // requests come when the test asks for one
    await page.click("#restart");
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  async function set(id: string, value: number): Promise<void> {
    await page.$eval(
      `#${id}`,
      (input, to) => {
        (input as HTMLInputElement).value = String(to);
        input.dispatchEvent(new Event("input"));
      },
      value,
    );
  }

  const step = (times: number) =>
    page.$eval(
      "#step",
      (button, n) => {
        for (let at = 0; at < n; at++) (button as HTMLButtonElement).click();
      },
      times,
    );

  async function shown(): Promise<
    Record<"requests" | "hits" | "evicted" | "refused" | "active" | "inactive" | "free" | "squares", number>
  > {
    const counts = await page.$$eval("dd", (all) =>
      all.map((one) => [one.id, Number.parseFloat(one.textContent ?? "")]),
    );
    return Object.fromEntries([...counts, ["squares", await page.$$eval("#blocks i", (all) => all.length)]]);
  }

  test("begins with an empty cache", async () => {
    expect(await shown()).toMatchObject({ requests: 0, evicted: 0, active: 0, inactive: 0, free: 192, squares: 192 });
  });

  test("shows it filling and hitting, block by block", async () => {
    await step(10);
    const { requests, hits, evicted, active, inactive, free, squares } = await shown();
    expect({ requests, evicted, squares, sum: active + inactive + free }).toEqual({
      requests: 10,
      evicted: 0,
      squares: 192,
      sum: 192,
    });
    expect(hits).toBeGreaterThan(20);
    expect(active).toBeGreaterThan(0);
    expect(await page.$$eval("#blocks .active", (all) => all.length)).toBe(active);
    expect(await page.$$eval("#blocks .cached", (all) => all.length)).toBe(inactive);
    expect(await page.textContent("#log li")).toMatch(
      /^conversation \d+: \d+ blocks, \d+ hit, \d+ computed, 0 evicted$/,
    );
  });

  test("shows it evicting once it is full", async () => {
    await step(200);
    const { requests, evicted, refused, active, inactive, free } = await shown();
    expect({ requests, refused, sum: active + inactive + free }).toEqual({ requests: 210, refused: 0, sum: 192 });
    expect(evicted).toBeGreaterThan(100);
    expect(free).toBeLessThan(32);
  });

  test("has controls: a larger cache hits more, and one that is too small has no room", async () => {
    const hitsAt = async (capacity: number) => {
      await set("capacity", capacity);
      await step(200);
      return shown();
    };
    const [small, large] = [await hitsAt(32), await hitsAt(512)];
    expect(small.refused).toBeGreaterThan(0);
    expect(large).toMatchObject({ refused: 0, squares: 512 });
    expect(large.hits).toBeGreaterThan(small.hits + 10);
    expect(errors).toEqual([]);
    const picture = process.env["KVROUTE_SCREENSHOT"];
    if (picture !== undefined) await page.screenshot({ path: picture });
  });
});
