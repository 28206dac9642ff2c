import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OptionError } from "../../src/errors.js";
import { HeaderList } from "../../src/gateway/header-list.js";
import { HEALTH_BODY_BYTES_MAX, HEALTH_PARALLEL, HealthChecks } from "../../src/gateway/health.js";
import { type HealthOptions, healthSettings } from "../../src/gateway/health-options.js";
import type { Answer, AnswerBody } from "../../src/gateway/types.js";
import type { Upstream, UpstreamRequest } from "../../src/gateway/upstream.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { scaled } from "../support/scale.js";

/** A check at a worker whose answer the test writes by hand. It hears the signal only where it is told to. */
interface HandCheck {
  readonly request: UpstreamRequest;
  readonly answer: (status: number, body?: AnswerBody) => void;
  readonly fail: (reason: unknown) => void;
}

class HandUpstream implements Upstream {
  readonly checks: HandCheck[] = [];

  send(request: UpstreamRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const answer = (status: number, body?: AnswerBody) =>
        resolve({ status, statusText: "", headers: HeaderList.of(), body });
      this.checks.push({ request, answer, fail: reject });
    });
  }
}

/** A body of chunks; it stays open where it has no end. */
class HandBody implements AnswerBody {
  reads = 0;
  cancels = 0;
  cancelError: Error | undefined;

  constructor(
    readonly chunks: Uint8Array[],
    readonly ending: "end" | "open" | "break" = "end",
  ) {}

  async read(): Promise<Uint8Array | undefined> {
    const chunk = this.chunks[this.reads++];
    if (chunk !== undefined || this.ending === "end") return chunk;
    if (this.ending === "break") throw new TypeError("terminated");
    return new Promise(() => {});
  }

  async cancel(): Promise<void> {
    this.cancels++;
    if (this.cancelError !== undefined) throw this.cancelError;
  }
}

/** Lets everything happen that waits for promises alone. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

function stage(options: HealthOptions = {}, random: () => number = () => 0.5) {
  const clock = new VirtualClock();
  const upstream = new HandUpstream();
  const changes: [string, boolean][] = [];
  const settings = healthSettings({ intervalMs: 1_000, timeoutMs: 100, jitter: 0, ...options });
  const onChange = (id: string, isHealthy: boolean) => void changes.push([id, isHealthy]);
  const health = new HealthChecks({ settings, clock, random, upstream, onChange });
  /** Lets the next check of the only worker come, and ends it. */
  const check = async (status: number) => {
    clock.step();
    upstream.checks.at(-1)?.answer(status);
    await settle();
  };
  return { clock, upstream, changes, health, check };
}

const worker = (id: string) => ({ id, url: `http://${id}` });

describe("checks of health", () => {
  test("set no timer before they start, and start once", async () => {
    const { clock, health, upstream } = stage();
    health.add(worker("a"));
    expect(clock.pending).toBe(0);
    health.start();
    health.start();
    expect(clock.pending).toBe(1);
    health.add(worker("b"));
    expect(clock.pending).toBe(2);
    clock.advance(0);
    expect(upstream.checks.map(({ request }) => request.url)).toEqual(["http://a/health", "http://b/health"]);
  });

  test("carry the headers of the worker, and are GETs of the path", () => {
    const { clock, health, upstream } = stage({ path: "/v1/ping?deep=1" });
    const headers = HeaderList.of([["authorization", "Bearer k"]]);
    health.add({ ...worker("a"), headers });
    health.start();
    clock.advance(0);
    const { request } = upstream.checks[0] as HandCheck;
    expect([request.method, request.url, request.bytes]).toEqual(["GET", "http://a/v1/ping?deep=1", undefined]);
    expect([...request.headers]).toEqual([["authorization", "Bearer k"]]);
    request.headers.set("authorization", "other");
    expect(headers.get("authorization")).toBe("Bearer k");
  });

  test("of many workers are spread by chance: the first over a share of the interval, the next around it", async () => {
    const chances = [0, 0.5, 0.75];
    let draws = 0;
    const { clock, health, upstream } = stage({ jitter: 0.2 }, () => chances[draws++ % chances.length] as number);
    for (const id of ["a", "b", "c"]) health.add(worker(id));
    health.start();
    const times: number[] = [];
    for (let at = 0; at < 6; at++) {
      clock.step();
      times.push(clock.now());
      upstream.checks.at(-1)?.answer(200);
      await settle();
    }
    expect(times.map(Math.round)).toEqual([0, 100, 150, 800, 1_100, 1_250]);
  });

  test.each([200, 204, 299])("with status %d are good", async (status) => {
    const { health, check } = stage({ successes: 1 });
    health.add(worker("a"));
    health.start();
    await check(status);
    expect(health.state("a")).toBe("healthy");
  });

  test.each([101, 199, 300, 302, 404, 429, 500, 503])("with status %d are not", async (status) => {
    const { health, check } = stage({ failures: 1 });
    health.add(worker("a"));
    health.start();
    await check(status);
    expect([health.state("a"), health.isUsable("a")]).toEqual(["unhealthy", false]);
  });

  test("that cannot be sent are not good, however that fails", async () => {
    const { clock, upstream, health } = stage({ failures: 2 });
    health.add(worker("a"));
    health.start();
    clock.advance(0);
    upstream.checks[0]?.fail(new TypeError("fetch failed"));
    await settle();
    upstream.send = () => {
      throw new Error("at once");
    };
    clock.advance(1_000);
    await settle();
    expect([health.state("a"), clock.pending]).toEqual(["unhealthy", 1]);
  });

  test("take as long as they may and no longer, also where the upstream does not hear the signal", async () => {
    const { clock, upstream, health } = stage({ failures: 1 });
    health.add(worker("a"));
    health.start();
    clock.advance(99);
    await settle();
    const late = upstream.checks[0] as HandCheck;
    expect([late.request.signal.aborted, health.state("a")]).toEqual([false, "unknown"]);
    clock.advance(1);
    await settle();
    expect([late.request.signal.aborted, health.state("a"), clock.pending]).toEqual([true, "unhealthy", 1]);
    const body = new HandBody([], "open");
    late.answer(200, body);
    await settle();
    expect([body.reads, body.cancels, health.state("a")]).toEqual([0, 1, "unhealthy"]);
  });

  test("of one worker never overlap", async () => {
    const { clock, upstream, health } = stage({ intervalMs: 100, timeoutMs: 5_000 });
    health.add(worker("a"));
    health.start();
    clock.advance(4_000);
    await settle();
    expect(upstream.checks.length).toBe(1);
    upstream.checks[0]?.answer(200);
    await settle();
    clock.advance(99);
    expect(upstream.checks.length).toBe(1);
    clock.advance(1);
    expect(upstream.checks.length).toBe(2);
  });

  test("run as many at a time as may; the others wait for their turn, in order", async () => {
    const { clock, upstream, health } = stage();
    for (let at = 0; at < HEALTH_PARALLEL + 3; at++) health.add(worker(`w${at}`));
    health.start();
    clock.advance(0);
    expect(upstream.checks.length).toBe(HEALTH_PARALLEL);
    health.remove(`w${HEALTH_PARALLEL}`); // it waits
    health.remove("w0"); // it is being checked: its place is free
    await settle();
    expect(upstream.checks.at(-1)?.request.url).toBe(`http://w${HEALTH_PARALLEL + 1}/health`);
    upstream.checks[5]?.answer(200);
    await settle();
    expect(upstream.checks.at(-1)?.request.url).toBe(`http://w${HEALTH_PARALLEL + 2}/health`);
    expect(upstream.checks.length).toBe(HEALTH_PARALLEL + 2);
  });
});

describe("the body of an answer", () => {
  const checked = async (body: HandBody, options: HealthOptions = {}) => {
    const all = stage({ failures: 1, successes: 1, ...options });
    all.health.add(worker("a"));
    all.health.start();
    all.clock.advance(0);
    all.upstream.checks[0]?.answer(200, body);
    await settle();
    return all;
  };

  test("is read to its end", async () => {
    const body = new HandBody([new Uint8Array(3), new Uint8Array(HEALTH_BODY_BYTES_MAX - 3)]);
    const { health } = await checked(body);
    expect([body.reads, body.cancels, health.state("a")]).toEqual([3, 0, "healthy"]);
  });

  test("is cancelled where it is too long; that it cannot be is nobody's concern", async () => {
    const body = new HandBody([new Uint8Array(3), new Uint8Array(HEALTH_BODY_BYTES_MAX - 2)], "open");
    body.cancelError = new Error("no");
    const { health } = await checked(body);
    expect([body.reads, body.cancels, health.state("a")]).toEqual([2, 1, "healthy"]);
  });

  test("makes the check bad where it breaks off, or does not end in time", async () => {
    expect((await checked(new HandBody([], "break"))).health.state("a")).toBe("unhealthy");
    const open = new HandBody([], "open");
    const { clock, health } = await checked(open);
    expect([health.state("a"), open.cancels]).toEqual(["unknown", 0]);
    clock.advance(100);
    await settle();
    expect([health.state("a"), open.cancels]).toEqual(["unhealthy", 1]);
  });
});

describe("the set of workers", () => {
  test("loses a worker with its check, whose end changes nothing any more", async () => {
    const { clock, upstream, health, changes } = stage({ failures: 1, successes: 1 });
    health.add(worker("a"));
    health.start();
    clock.advance(0);
    health.remove("a");
    health.remove("a");
    expect(upstream.checks[0]?.request.signal.aborted).toBe(true);
    upstream.checks[0]?.answer(200);
    await settle();
    expect([clock.pending, changes, health.state("a"), health.isUsable("a")]).toEqual([0, [], "unknown", true]);
  });

  test("takes a worker of the same id for another, of which nothing is known", async () => {
    const { clock, upstream, health, check, changes } = stage({ failures: 1, successes: 1 });
    health.add(worker("a"));
    health.start();
    await check(500);
    clock.step(); // the next check of the first is under way
    health.add({ id: "a", url: "http://other" });
    await settle();
    expect([health.state("a"), clock.pending]).toEqual(["unknown", 1]);
    await check(200);
    expect([upstream.checks.at(-1)?.request.url, changes]).toEqual([
      "http://other/health",
      [
        ["a", false],
        ["a", true],
      ],
    ]);
  });

  test("leaves no timer and no check when it is closed, and takes nobody in afterwards", async () => {
    const { clock, upstream, health } = stage();
    for (let at = 0; at < HEALTH_PARALLEL + 3; at++) health.add(worker(`w${at}`));
    health.start();
    clock.advance(0);
    health.close();
    await settle();
    expect(upstream.checks.every(({ request }) => request.signal.aborted)).toBe(true);
    health.add(worker("b"));
    health.start();
    expect([clock.pending, upstream.checks.length]).toEqual([0, HEALTH_PARALLEL]);
    const unstarted = stage();
    unstarted.health.add(worker("a"));
    unstarted.health.close();
    unstarted.health.start();
    expect(unstarted.clock.pending).toBe(0);
  });

  test("may change while it is told of a change", async () => {
    const clock = new VirtualClock();
    const upstream = new HandUpstream();
    const settings = healthSettings({ jitter: 0, failures: 1 });
    const onChange = (id: string) => health.remove(id);
    const health: HealthChecks = new HealthChecks({ settings, clock, random: () => 0, upstream, onChange });
    health.add(worker("a"));
    health.start();
    clock.advance(0);
    upstream.checks[0]?.answer(500);
    await settle();
    expect([clock.pending, health.state("a")]).toEqual([0, "unknown"]);
  });
});

/** What the list of all results of a worker says of it, looked at from its last on. */
function naiveState(results: readonly boolean[], failures: number, successes: number): string {
  for (let end = results.length; end > 0; end--) {
    const last = (count: number) => (end >= count ? results.slice(end - count, end) : [undefined]);
    if (last(successes).every((isGood) => isGood === true)) return "healthy";
    if (last(failures).every((isGood) => isGood === false)) return "unhealthy";
  }
  return "unknown";
}

describe("the state of a worker beside the naive one", () => {
  const play = async (results: readonly boolean[], failures: number, successes: number) => {
    const { health, check, changes } = stage({ failures, successes });
    health.add(worker("a"));
    health.start();
    let before = "unknown";
    let told = 0;
    for (let count = 1; count <= results.length; count++) {
      await check(results[count - 1] ? 200 : 500);
      const state = naiveState(results.slice(0, count), failures, successes);
      if (state !== before) told++;
      expect([health.state("a"), health.isUsable("a"), changes.length]).toEqual([state, state !== "unhealthy", told]);
      if (state !== before) expect(changes.at(-1)).toEqual(["a", state === "healthy"]);
      before = state;
    }
  };

  test("is the same under random results", async () => {
    const few = fc.integer({ min: 1, max: 4 });
    await fc.assert(fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 30 }), few, few, play), {
      numRuns: scaled(200),
    });
  });

  test("is the same under all short series of results", async () => {
    const length = 7;
    for (let number = 0; number < 2 ** length; number++) {
      const results = Array.from({ length }, (_, at) => (number >> at) % 2 === 1);
      await play(results, 3, 2);
      await play(results, 1, 1);
    }
  });
});

describe("options of health checks", () => {
  test("have the defaults of the field", () => {
    const defaults = { path: "/health", intervalMs: 60_000, timeoutMs: 5_000, failures: 3, successes: 2, jitter: 0.2 };
    expect(healthSettings()).toEqual(defaults);
    expect(healthSettings({ path: undefined, jitter: undefined })).toEqual(defaults);
  });

  test.each<[keyof HealthOptions, number, number, string]>([
    ["intervalMs", 100, 86_400_000, "a whole number"],
    ["timeoutMs", 1, 600_000, "a whole number"],
    ["failures", 1, 1_000, "a whole number"],
    ["successes", 1, 1_000, "a whole number"],
    ["jitter", 0, 1, "a number"],
  ])("%s goes from %d to %d and is %s", (name, least, most, what) => {
    for (const good of [least, most]) expect(healthSettings({ [name]: good })[name]).toBe(good);
    for (const bad of [least - 1, most + 1, Number.NaN, "1", null]) {
      const refused = expect(() => healthSettings({ [name]: bad as number }));
      refused.toThrow(OptionError);
      refused.toThrow(`Expected health.${name} to be ${what} from ${least} to ${most}, got `);
    }
  });

  test("path is one", () => {
    for (const path of ["/", "/health?a=b", `/${"x".repeat(1_023)}`]) expect(healthSettings({ path }).path).toBe(path);
    for (const path of ["", "health", "/a b", "/a#b", "/a\n", "/\u00e9", `/${"x".repeat(1_024)}`, 5, null]) {
      const refused = expect(() => healthSettings({ path: path as string }));
      refused.toThrow(OptionError);
      refused.toThrow("Expected health.path to be a path of at most 1024 characters that begins with /, got ");
    }
  });

  test.each([null, 5, "on", true])("are an object, not %j", (options) => {
    expect(() => healthSettings(options as never)).toThrow("Expected health to be an object, got");
  });
});
