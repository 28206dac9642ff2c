import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { expectPassed } from "../runtimes/outcome.js";
import { hasChromium, launch, warnOfNoChromium } from "./chromium.js";
import { type PageServer, servePages } from "./server.js";

const project = inject("project");
warnOfNoChromium();

const INLINE = "base64, compiled at first use";
const page = (script: string, map?: object) => {
  const imports = map === undefined ? "" : `<script type="importmap">${JSON.stringify({ imports: map })}</script>`;
  return `<!doctype html><title>kvroute</title><link rel="icon" href="data:,">${imports}<pre></pre>${script}`;
};
const moduleScript = (file: string) => `<script type="module" src="/${file}"></script>`;

/** How long a page may take on a busy machine. */
const PRINTS_MS = 90_000;

const MODULES = "/node_modules";
const SEAM = "/node_modules/kvroute/dist/core/module.inline.js";
/**
 * The self-contained file, and beside it an entry that needs no other package. The engines that its router has before it
 * are those of the package, with a core of their own.
 */
const single = () => ({
  kvroute: `${MODULES}/kvroute/dist/kvroute.browser.js`,
  "kvroute/disagg": `${MODULES}/kvroute/dist/disagg.js`,
  "kvroute/testing": `${MODULES}/kvroute/dist/testing.js`,
  "#core": SEAM,
  ...packages(["@assemblyscript/loader", "@msgpack/msgpack"]),
});
/** Every entry as it is packed, and the packages that they import. */
function entries(): Record<string, string> {
  const names = ["disagg", "events", "http", "testing"];
  const own = names.map((name) => [`kvroute/${name}`, `${MODULES}/kvroute/dist/${name}.js`]);
  const main = { kvroute: `${MODULES}/kvroute/dist/index.js`, "#core": SEAM };
  return { ...main, ...Object.fromEntries(own), ...packages(Object.keys(manifestOf("kvroute").dependencies)) };
}

/** Packages, and where a page finds them. */
const packages = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `${MODULES}/${name}/${moduleOf(name)}`]));

const manifestOf = (name: string) => JSON.parse(readFileSync(join(project, MODULES, name, "package.json"), "utf8"));

/** The file of a package that a page imports. */
function moduleOf(name: string): string {
  const { exports, module, main } = manifestOf(name);
  let entry = exports?.["."] ?? exports ?? module ?? main ?? "index.js";
  while (typeof entry !== "string") entry = entry.import ?? entry.default ?? "";
  return entry.replace(/^\.\//, "");
}

/** modules.js of the hosts without the entries that need packages and that the single file has no part of. */
const OF_SINGLE = `import * as kvroute from "kvroute"; import * as disagg from "kvroute/disagg";
import * as testing from "kvroute/testing";
export const modules = { kvroute, disagg, testing };`;

describe.skipIf(!hasChromium)("the packed package in Chromium", () => {
  let browser: Browser;
  const servers: PageServer[] = [];

  beforeAll(async () => {
    browser = await launch();
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    for (const server of servers) await server.close();
  });

  /** Opens a page and waits for what the suite prints there. */
  async function outcomeOf(folder: string, path: string, pages: Record<string, string> = {}): Promise<string> {
    const server = await servePages(folder, { pages });
    servers.push(server);
    const tab = await browser.newPage();
    const errors: string[] = [];
    tab.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    const broken = new Promise<never>((_, reject) => {
      tab.on("pageerror", (error) => reject(new Error(`${path} threw: ${error.message} ${error.stack}`)));
      tab.on("requestfailed", (request) => reject(new Error(`${request.url()} failed`)));
    });
    broken.catch(() => undefined); // it may come when all is over
    await tab.goto(server.url + path);
    const said = tab.waitForFunction(() => document.querySelector("pre")?.textContent, undefined, {
      timeout: PRINTS_MS,
    });
    const text = await Promise.race([said, broken]).catch((error) => {
      throw new Error(`${path} printed nothing: ${error.message}\n${errors.join("\n")}`);
    });
    const printed = (await text.jsonValue()) ?? "";
    await tab.close();
    expect(errors).toEqual([]);
    return printed;
  }

  test("passes the portable suite as a module script without a bundler, from its self-contained file", async () => {
    const pages = { "/": page(moduleScript("page.js"), single()), "/modules.js": OF_SINGLE };
    const printed = await outcomeOf(project, "/", pages);
    expectPassed(printed, { as: browser.version(), runtime: "Chromium, no bundler", core: INLINE, skips: 6 });
  });

  test("passes the portable suite with every entry as it is packed, under an import map", async () => {
    const printed = await outcomeOf(project, "/", { "/": page(moduleScript("page.js"), entries()) });
    expectPassed(printed, { as: browser.version(), runtime: "Chromium, import map", core: INLINE });
  });

  test("passes the portable suite in a page built by Vite, and in a Web Worker", async () => {
    const root = join(project, "vite");
    mkdirSync(root, { recursive: true });
    for (const file of ["modules.js", "page.js", "portable.js", "web-worker.js", "worker-page.js"]) {
      cpSync(join(project, file), join(root, file));
    }
    writeFileSync(join(root, "page.html"), page(moduleScript("page.js")));
    writeFileSync(join(root, "worker.html"), page(moduleScript("worker-page.js")));
    await build({
      root,
      configFile: false,
      logLevel: "error",
      worker: { format: "es" },
      build: { rollupOptions: { input: { page: join(root, "page.html"), worker: join(root, "worker.html") } } },
    });
    const built = join(root, "dist");
    expect(readFileSync(join(built, "page.html"), "utf8")).toContain("/assets/");
    const inPage = await outcomeOf(built, "/page.html");
    expectPassed(inPage, { as: browser.version(), runtime: "Chromium, built by Vite", core: INLINE });
    const inWorker = await outcomeOf(built, "/worker.html");
    expectPassed(inWorker, { as: browser.version(), runtime: "Chromium, Web Worker", core: INLINE });
  });
});
