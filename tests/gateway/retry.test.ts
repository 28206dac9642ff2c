import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OptionError } from "../../src/errors.js";
import { HeaderList } from "../../src/gateway/header-list.js";
import {
  type AttemptFailure,
  backoffMs,
  jittered,
  retryAfterOf,
  retryDelayMs,
  sendFailureOf,
  verdictOf,
} from "../../src/gateway/retry.js";
import { RETRY_REASONS, type RetryOptions, retrySettings } from "../../src/gateway/retry-options.js";

const REPEATABLE = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/embeddings"];
const OTHERS = ["/v1/responses", "/v1/audio/speech", "/v1/chat/completions/", "/v1/chat", ""];
const headers = (pairs: Record<string, string> = {}) => HeaderList.of(Object.entries(pairs));
const answer = (path: string, status: number, pairs: Record<string, string> = {}) =>
  verdictOf({ path, status, headers: headers(pairs) });
const CHAT = REPEATABLE[0] as string;

describe("what follows from an answer", () => {
  test.each([
    // status, for the breaker, retried on paths that may be repeated, on others
    [200, "success", undefined, undefined],
    [204, "success", undefined, undefined],
    [302, "success", undefined, undefined],
    [399, "success", undefined, undefined],
    [400, "neutral", undefined, undefined],
    [401, "neutral", undefined, undefined],
    [404, "neutral", undefined, undefined],
    [408, "neutral", undefined, undefined],
    [409, "neutral", undefined, undefined],
    [422, "neutral", undefined, undefined],
    [429, "neutral", "429", "429"],
    [499, "neutral", undefined, undefined],
    [500, "failure", "5xx", undefined],
    [501, "neutral", undefined, undefined],
    [502, "failure", "5xx", undefined],
    [503, "neutral", "503", "503"],
    [504, "failure", "5xx", undefined],
    [505, "neutral", undefined, undefined],
    [529, "failure", "5xx", undefined],
    [599, "failure", "5xx", undefined],
  ] as const)("of status %d: %s, and another try by %s, on other paths by %s", (status, end, retry, retryElsewhere) => {
    for (const path of REPEATABLE) expect(answer(path, status)).toEqual({ end, retry, retryAfterMs: undefined });
    for (const path of OTHERS) {
      expect(answer(path, status)).toEqual({ end, retry: retryElsewhere, retryAfterMs: undefined });
    }
  });

  test("is no other try where the worker says so, whatever the status, and the breaker does not mind", () => {
    for (const status of [200, 400, 429, 500, 501, 503]) {
      const forbidden = answer(CHAT, status, { "x-should-retry": "false" });
      expect(forbidden).toEqual({ ...answer(CHAT, status), retry: undefined });
    }
  });

  test.each([
    ["/v1/responses", 500, "asked"],
    ["/v1/responses", 503, "503"],
    [CHAT, 500, "5xx"],
    [CHAT, 409, "asked"],
    [CHAT, 501, "asked"],
    [CHAT, 200, undefined],
  ])("on %s with status %d is another try by %s where the worker asks for it", (path, status, retry) => {
    const asked = answer(path, status, { "x-should-retry": "true" });
    expect(asked).toEqual({ ...answer(path, status), retry });
    expect(answer(path, status, { "x-should-retry": "maybe" })).toEqual(answer(path, status));
  });

  test("is how long the worker wants to be left alone, where its load is the matter and not the request", () => {
    const after = { "retry-after": "7" };
    for (const status of [429, 500, 503]) expect(answer("/v1/responses", status, after).retryAfterMs).toBe(7_000);
    for (const status of [200, 401, 413, 501]) expect(answer(CHAT, status, after).retryAfterMs).toBeUndefined();
    expect(answer(CHAT, 409, { ...after, "x-should-retry": "true" }).retryAfterMs).toBe(7_000);
  });
});

describe("what follows from no answer", () => {
  test.each([
    ["connect", "failure", "connect", "connect"],
    ["first-byte-timeout", "failure", "first-byte-timeout", undefined],
    ["broken", "failure", "broken", undefined],
    ["stalled", "failure", undefined, undefined],
    ["aborted", "neutral", undefined, undefined],
  ] as const)("%s: %s, and another try by %s, on other paths by %s", (failure, end, retry, retryElsewhere) => {
    const retryAfterMs = undefined;
    for (const path of REPEATABLE) expect(verdictOf({ path, failure })).toEqual({ end, retry, retryAfterMs });
    for (const path of OTHERS) {
      expect(verdictOf({ path, failure })).toEqual({ end, retry: retryElsewhere, retryAfterMs });
    }
  });

  test("there is never another try once the caller has had a byte", () => {
    const failures: AttemptFailure[] = ["connect", "first-byte-timeout", "broken", "stalled", "aborted"];
    for (const failure of failures) {
      const begun = verdictOf({ path: CHAT, failure, hasBegun: true });
      expect(begun).toEqual({ ...verdictOf({ path: CHAT, failure }), retry: undefined });
    }
  });

  test("reasons are those that are listed, under any end", () => {
    const path = fc.constantFrom(...REPEATABLE, ...OTHERS);
    const status = fc.integer({ min: 100, max: 999 });
    const asked = fc.constantFrom<Record<string, string>>({}, { "x-should-retry": "true" });
    fc.assert(
      fc.property(path, status, asked, (path, status, asked) => {
        const { retry } = answer(path, status, asked);
        if (retry !== undefined) expect(RETRY_REASONS).toContain(retry);
      }),
    );
  });
});

describe("how long a worker wants to be left alone", () => {
  const DATE = "Sun, 06 Nov 1994 08:49:37 GMT";
  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "120" }, 120_000],
    [{ "retry-after": " 1.5 " }, 1_500],
    [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
    [{ "retry-after-ms": "12.5" }, 12.5],
    [{ "retry-after-ms": "soon", "retry-after": "9" }, 9_000],
    [{ "retry-after": "-1" }, undefined],
    [{ "retry-after": "1e3" }, undefined],
    [{ "retry-after": "" }, undefined],
    [{ "retry-after": "5, 6" }, undefined],
    [{ "retry-after": "Infinity" }, undefined],
    [{ "retry-after": "9".repeat(400) }, Number.POSITIVE_INFINITY],
    [{ "retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", date: DATE }, 23_000],
    [{ "retry-after": "Sun, 06 Nov 1994 08:49:00 GMT", date: DATE }, 0],
    [{ "retry-after": "Sun, 06 Nov 1994 08:50:00 GMT" }, undefined],
    [{ "retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", date: "today" }, undefined],
    [{ "retry-after": "Sun, 99 Xyz 1994 08:50:00 GMT", date: DATE }, undefined],
    [{ "retry-after": "1994-11-06T08:50:00Z", date: DATE }, undefined],
    [{ "retry-after": "Sunday, 06-Nov-94 08:50:00 GMT", date: DATE }, undefined],
  ])("is read of %j as %s", (pairs, expected) => {
    expect(retryAfterOf(headers(pairs))).toBe(expected);
  });

  test("is 0 or more or nothing, whatever stands there", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (ms, after, date) => {
        const read = retryAfterOf(headers({ "retry-after-ms": ms, "retry-after": after, date }));
        expect(read === undefined || read >= 0).toBe(true);
      }),
    );
  });
});

const middle = () => 0.5;

describe("the wait between tries", () => {
  test("grows by its factor up to its limit", () => {
    const settings = retrySettings({ attempts: 10, maxBackoffMs: 300 });
    const waits = [1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(settings, attempt, middle));
    expect(waits).toEqual([50, 75, 112.5, 168.75, 253.125, 300]);
  });

  test("lies within the jitter around that, and reaches both of its ends", () => {
    const settings = retrySettings();
    expect(backoffMs(settings, 1, () => 0)).toBeCloseTo(40);
    expect(backoffMs(settings, 1, () => 1 - 2 ** -53)).toBeCloseTo(60);
    const unit = fc.double({ min: 0, max: 1 - 2 ** -53, noNaN: true });
    const option = fc.record({
      backoffMs: fc.nat(2_000),
      maxBackoffMs: fc.integer({ min: 2_000, max: 600_000 }),
      factor: fc.double({ min: 1, max: 10, noNaN: true }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(option, fc.integer({ min: 1, max: 10 }), unit, (options, attempt, chance) => {
        const settings = retrySettings(options);
        const waitMs = backoffMs(settings, attempt, () => chance);
        const plainMs = Math.min(settings.maxBackoffMs, settings.backoffMs * settings.factor ** (attempt - 1));
        expect(waitMs).toBeGreaterThanOrEqual(plainMs * (1 - settings.jitter) - 1e-6);
        expect(waitMs).toBeLessThanOrEqual(plainMs * (1 + settings.jitter) + 1e-6);
      }),
    );
  });

  test("is what it is without jitter, whatever chance says", () => {
    expect([jittered(80, 0, () => 0), jittered(80, 0, () => 0.99)]).toEqual([80, 80]);
  });
});

describe("what comes after a try", () => {
  const settings = retrySettings();
  const busy = (retryAfter?: string) =>
    answer(CHAT, 503, retryAfter === undefined ? {} : { "retry-after-ms": retryAfter });
  const delay = (attempt: number, hasOther: boolean, verdict = busy()) =>
    retryDelayMs(settings, { attempt, hasOther, verdict }, middle);

  test("is one at another worker, at once, also where this one wants to be left alone for long", () => {
    expect([delay(1, true), delay(2, true), delay(1, true, busy("3600000"))]).toEqual([0, 0, 0]);
  });

  test("is one at the same worker where there is no other, when it has had its time", () => {
    expect([delay(1, false), delay(2, false)]).toEqual([50, 75]);
    expect([delay(1, false, busy("10")), delay(1, false, busy("700"))]).toEqual([50, 700]);
  });

  test("is none where the only worker wants more time than a wait may take", () => {
    expect([delay(1, false, busy("2000")), delay(1, false, busy("2001"))]).toEqual([2_000, undefined]);
  });

  test("is none after the last try, nor where none may be", () => {
    expect([delay(2, true), delay(3, true), delay(3, false)]).toEqual([0, undefined, undefined]);
    expect(delay(1, true, answer(CHAT, 400))).toBeUndefined();
    const once = retrySettings({ attempts: 1 });
    expect(retryDelayMs(once, { attempt: 1, hasOther: true, verdict: busy() }, middle)).toBeUndefined();
  });
});

describe("a request that could not be sent", () => {
  const failed = (code: string) => new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code }) });

  test.each(["ECONNREFUSED", "ENOTFOUND", "UND_ERR_CONNECT_TIMEOUT"])("with %s has not reached its worker", (code) => {
    expect(sendFailureOf(failed(code))).toBe("connect");
    expect(sendFailureOf(Object.assign(new Error("x"), { code }))).toBe("connect");
    expect(sendFailureOf(new Error("outer", { cause: failed(code) }))).toBe("connect");
  });

  test("with anything else may have", () => {
    for (const code of ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]) expect(sendFailureOf(failed(code))).toBe("broken");
    for (const odd of [undefined, null, "ECONNREFUSED", 5, new TypeError("Failed to fetch"), { code: 5 }]) {
      expect(sendFailureOf(odd)).toBe("broken");
    }
    const endless: { cause?: unknown } = {};
    endless.cause = endless;
    expect(sendFailureOf(endless)).toBe("broken");
  });
});

describe("options of retrying", () => {
  test("have their defaults", () => {
    const defaults = { attempts: 3, backoffMs: 50, maxBackoffMs: 2_000, factor: 1.5, jitter: 0.2 };
    expect(retrySettings()).toEqual(defaults);
    expect(retrySettings({ attempts: undefined, jitter: undefined })).toEqual(defaults);
  });

  test.each<[keyof RetryOptions, number, number, string]>([
    ["attempts", 1, 10, "a whole number"],
    ["backoffMs", 0, 600_000, "a whole number"],
    ["maxBackoffMs", 0, 600_000, "a whole number"],
    ["factor", 1, 10, "a number"],
    ["jitter", 0, 1, "a number"],
  ])("%s goes from %d to %d and is %s", (name, least, most, what) => {
    const rest = name === "backoffMs" ? { maxBackoffMs: 600_000 } : name === "maxBackoffMs" ? { backoffMs: 0 } : {};
    for (const good of [least, most]) expect(retrySettings({ ...rest, [name]: good })[name]).toBe(good);
    for (const bad of [least - 1, most + 1, Number.NaN, "1", null]) {
      const refused = expect(() => retrySettings({ ...rest, [name]: bad as number }));
      refused.toThrow(OptionError);
      refused.toThrow(`Expected retry.${name} to be ${what} from ${least} to ${most}, got `);
    }
  });

  test("maxBackoffMs is not less than backoffMs", () => {
    expect(retrySettings({ backoffMs: 70, maxBackoffMs: 70 })).toMatchObject({ backoffMs: 70, maxBackoffMs: 70 });
    expect(() => retrySettings({ backoffMs: 70, maxBackoffMs: 69 })).toThrow(
      "Expected retry.maxBackoffMs to be at least retry.backoffMs, which is 70, got 69.",
    );
  });

  test.each([null, 5, "on", true])("are an object, not %j", (options) => {
    expect(() => retrySettings(options as never)).toThrow("Expected retry to be an object, got");
  });
});
