import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RouterOptions, RouterWarning } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, type HandCall, handStage } from "./stage.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const OPEN_MS = 1_000;

function stage(options: Partial<RouterOptions> = {}) {
  const clock = new VirtualClock();
  const warnings: RouterWarning[] = [];
  const onWarning = (warning: RouterWarning) => warnings.push(warning);
  const breaker = { failures: 2, openMs: OPEN_MS, successes: 2 };
  return { clock, warnings, ...handStage({ clock, onWarning, breaker, ...options }) };
}

/** Has the worker answer a request with a status. */
async function ask({ engine, router }: ReturnType<typeof stage>, status: number): Promise<void> {
  const at = engine.calls.length;
  const response = router.fetch(CHAT_URL, chat("x"));
  const call = await engine.call(at);
  call.respond(new Response("{}", { status, headers: { "content-type": "application/json" } }));
  await (await response).text();
}

const respond = (call: HandCall, status: number) => call.respond(new Response(null, { status }));

describe("warnings", () => {
  test("say once that a breaker has opened, whatever its probes say, and once that it is closed again", async () => {
    const parts = stage();
    const { clock, warnings, router } = parts;
    await ask(parts, 500);
    expect(warnings).toEqual([]);
    await ask(parts, 500);
    const opened = {
      name: "KVROUTE_WARNING_BREAKER_OPENED",
      worker: "a",
      message:
        'Expected worker "a" to answer, but its last requests have failed (breaker.failures: 2): it gets none for 1000 ms.',
    };
    expect(warnings).toEqual([opened]);
    for (let probe = 0; probe < 3; probe++) {
      clock.advance(OPEN_MS);
      await ask(parts, 500);
    }
    expect(router.stats().workers[0]?.breaker?.openings).toBe(4);
    clock.advance(OPEN_MS);
    await ask(parts, 200);
    expect(warnings).toEqual([opened]); // it takes two
    await ask(parts, 200);
    const closed = { name: "KVROUTE_WARNING_BREAKER_CLOSED", worker: "a", message: 'Worker "a" answers again.' };
    expect(warnings).toEqual([opened, closed]);
    await ask(parts, 500);
    await ask(parts, 500);
    expect(warnings).toEqual([opened, closed, opened]);
  });

  test("say nothing of a worker that has been removed", async () => {
    const parts = stage({ breaker: { failures: 1 } });
    const response = parts.router.fetch(CHAT_URL, chat("x"));
    const call = await parts.engine.call(0);
    parts.router.removeWorker("a");
    parts.router.addWorker({ id: "a", url: "http://a" });
    call.respond(new Response("{}", { status: 500 }));
    await (await response).text();
    expect(parts.warnings).toEqual([]);
  });

  test("say once that a worker fails its health checks, and once that it passes them again", async () => {
    const parts = stage({ health: { intervalMs: 1_000, jitter: 0, failures: 2, successes: 2 } });
    const { clock, warnings, engine, router } = parts;
    router.watch();
    await turn();
    const check = async (status: number) => {
      const at = engine.calls.length;
      clock.advance(at === 0 ? 0 : 1_000);
      respond(await engine.call(at), status);
      await turn();
    };
    await check(200);
    await check(200);
    expect(warnings).toEqual([]); // it is as it was thought to be
    await check(500);
    expect(warnings).toEqual([]);
    for (let at = 0; at < 3; at++) await check(500);
    const ill = {
      name: "KVROUTE_WARNING_WORKER_UNHEALTHY",
      worker: "a",
      message:
        'Expected worker "a" to pass its health checks, but its last ones have failed (health.failures: 2): it gets no request.',
    };
    expect(warnings).toEqual([ill]);
    for (let at = 0; at < 3; at++) await check(200);
    const well = {
      name: "KVROUTE_WARNING_WORKER_HEALTHY",
      worker: "a",
      message: 'Worker "a" passes its health checks again.',
    };
    expect(warnings).toEqual([ill, well]);
    await router.close();
  });

  test("of a listener that closes the router hinder nobody", async () => {
    const parts = stage({ breaker: { failures: 1 }, onWarning: () => void parts.router.close() });
    await ask(parts, 500);
    expect((await parts.router.fetch(CHAT_URL, chat("x"))).status).toBe(503);
    await until(() => parts.router.stats().inFlight === 0, "nothing is left");
    expect(parts.clock.pending).toBe(0);
  });

  test("are those that stand in docs/router.md", () => {
    const namesIn = (text: string) => [...text.matchAll(/KVROUTE_WARNING_\w+/g)].map(([name]) => name);
    const folder = new URL("../../src/gateway/", import.meta.url);
    const files = readdirSync(folder).filter((file) => file.endsWith(".ts"));
    const named = files.flatMap((file) => namesIn(readFileSync(new URL(file, folder), "utf8")));
    const page = readFileSync(new URL("../../docs/router.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `(KVROUTE_WARNING_\w+)` \|/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual([...new Set(named)].sort());
  });
});
