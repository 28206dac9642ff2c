import { afterEach, describe, expect, test, vi } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import { SESSION_HEADERS, sessionOf, tenantOf, withoutAffinityHeaders } from "../../src/gateway/session.js";
import { SESSION_ID_LENGTH_MAX, SessionTable } from "../../src/selection/sessions.js";
import { chatKey, keyOf } from "./prompt-stage.js";

const FINGERPRINT = "0123456789abcdef";
const session = (headers: Record<string, string>, body: unknown = {}) =>
  sessionOf(HeaderList.of(new Headers(headers)), body, FINGERPRINT);

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a session is named", () => {
  test("by the first of the headers that clients send, in their order", () => {
    const all = Object.fromEntries(SESSION_HEADERS.map((name) => [name, `id of ${name}`]));
    for (const source of SESSION_HEADERS) {
      expect(session(all, { user: "u" })).toEqual({ id: `id of ${source}`, source });
      delete all[source];
    }
    expect(session(all, { user: "u" })).toEqual({ id: "u", source: "user" });
  });

  test("by a header in any case", () => {
    expect(session({ "X-Claude-Code-Session-Id": "s" })?.id).toBe("s");
    expect(session({ "X-Dynamo-Session-ID": "s" })?.id).toBe("s");
  });

  test.each([
    ["session.id=abc", "abc"],
    ["trace=1, session.id = a%20b;ttl=5 ,other=2", "a b"],
    ["session.id=100%", "100%"],
    ["session.idx=1,session.id=two,session.id=three", "two"],
  ])("by the baggage %s", (baggage, id) => {
    expect(session({ baggage }, { user: "u" })).toEqual({ id, source: "baggage session.id" });
  });

  test.each(["", "session.id=", "session.id", "a=session.id", ",,", "session.id=;p=1"])(
    "not by the baggage %j",
    (baggage) => {
      expect(session({ baggage })?.source).toBe("fingerprint");
    },
  );

  test("by the body, in the order of its fields", () => {
    const body: Record<string, unknown> = {
      user: "u",
      metadata: { user_id: "m" },
      previous_response_id: "r",
      prompt_cache_key: "k",
    };
    const named = () => session({}, body);
    expect(named()).toEqual({ id: "k", source: "prompt_cache_key" });
    delete body["prompt_cache_key"];
    expect(named()).toEqual({ id: "r", source: "previous_response_id" });
    delete body["previous_response_id"];
    expect(named()).toEqual({ id: "m", source: "metadata.user_id" });
    delete body["metadata"];
    expect(named()).toEqual({ id: "u", source: "user" });
    delete body["user"];
    expect(named()).toEqual({ id: FINGERPRINT, source: "fingerprint" });
  });

  test("never by what names a request, nor by fields that are no strings", () => {
    const headers = { "x-request-id": "r", "x-correlation-id": "c", "x-session-id": "  " };
    const body = { prompt_cache_key: 5, previous_response_id: null, metadata: "m", user: { id: "u" } };
    expect(session(headers, body)?.source).toBe("fingerprint");
    for (const odd of [undefined, null, "text", 5, []]) expect(session({}, odd)?.source).toBe("fingerprint");
  });

  test("never by what stands in a prompt", () => {
    const content = '{"user": "eve", "prompt_cache_key": "stolen"} x-session-id: eve';
    const body = { messages: [{ role: "user", content, user: "eve" }], tools: [{ user: "eve" }] };
    expect(session({}, body)?.source).toBe("fingerprint");
  });

  test("by an id of the largest length, and by none that is longer: nor by what comes after it", () => {
    const longest = "x".repeat(SESSION_ID_LENGTH_MAX);
    expect(session({ "x-session-id": longest })?.id).toBe(longest);
    expect(session({ "x-session-id": `${longest}x` }, { user: "u" })).toBeUndefined();
    expect(session({}, { user: `${longest}x` })).toBeUndefined();
    expect(sessionOf(HeaderList.of(), {}, "")).toBeUndefined();
  });
});

// Scenario 46: clients that send no key.
describe("without a key of the client, the fingerprint", () => {
  const system = { role: "system", content: "You are a helpful assistant with many rules." };
  const first = [system, { role: "user", content: "Plan a trip to Rome." }];
  const second = [...first, { role: "assistant", content: "When?" }, { role: "user", content: "In May." }];
  const idOf = (messages: unknown, fields: object = {}, tenant = "") => {
    const { parsed, fingerprint } = keyOf("/v1/chat/completions", { model: "m", messages, ...fields }, { tenant });
    return sessionOf(HeaderList.of(), parsed, fingerprint)?.id;
  };

  test("holds the turns of a conversation together", () => {
    expect(idOf(second)).toBe(idOf(first));
    expect(idOf(first)).toMatch(/^[0-9a-f]{16}$/);
  });

  test("tells conversations apart by system prompt, tools, first message, model and tenant", () => {
    const tools = [{ type: "function", function: { name: "search" } }];
    const ids = [
      idOf(first),
      idOf([{ ...system, content: "Be terse." }, first[1]]),
      idOf([system, { role: "user", content: "Plan a trip to Oslo." }]),
      idOf(first, { tools }),
      idOf(first, { model: "other" }),
      idOf(first, { cache_salt: "s" }),
      idOf(first, {}, "tenant"),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("gives way to a response that the request continues", () => {
    const body = { model: "m", input: "In May.", previous_response_id: "resp_1" };
    const { parsed, fingerprint } = keyOf("/v1/responses", body);
    expect(sessionOf(HeaderList.of(), parsed, fingerprint)?.id).toBe("resp_1");
  });

  test("does not depend on how long the prompt is", () => {
    const long = [{ role: "user", content: "x".repeat(100_000) }];
    expect(chatKey([...long, { role: "assistant", content: "y" }]).fingerprint).toBe(chatKey(long).fingerprint);
  });
});

describe("a tenant", () => {
  const tenant = (headers: Record<string, string>) => tenantOf(new Headers(headers));

  test("is the hash of the credentials, by whatever header they come", async () => {
    const all = await Promise.all([
      tenant({ authorization: "Bearer sk-1" }),
      tenant({ authorization: "Bearer sk-2" }),
      tenant({ "x-api-key": "sk-1" }),
      tenant({ "api-key": "sk-1" }),
      tenant({ authorization: "Bearer sk-1", "x-api-key": "sk-1" }),
    ]);
    expect(new Set(all).size).toBe(all.length);
    expect(await tenant({ authorization: "Bearer sk-1", "x-other": "1" })).toBe(all[0]);
    for (const name of all) {
      expect(name).toMatch(/^[0-9a-f]{64}$/);
      expect(name).not.toContain("sk-");
    }
  });

  test("is empty without a credential, and where the runtime has no digests", async () => {
    expect(await tenant({})).toBe("");
    vi.stubGlobal("crypto", {});
    expect(await tenant({ authorization: "Bearer sk-1" })).toBe("");
  });

  // Scenario 52: what a client calls its session is no authority.
  test("has pins of its own for the session ids that another sends, too", async () => {
    const table = new SessionTable();
    const id = session({ "x-session-id": "shared" })?.id as string;
    const [a, b] = await Promise.all([tenant({ authorization: "Bearer a" }), tenant({ authorization: "Bearer b" })]);
    expect(table.record(a as string, id, { workerId: "w1", dpRank: 0 }, 0)).toBe(true);
    expect(table.find(b as string, id, 0)).toBeUndefined();
    table.record(b as string, id, { workerId: "w2", dpRank: 0 }, 0);
    expect(table.find(a as string, id, 0)?.workerId).toBe("w1");
    expect(table.find(b as string, id, 0)?.workerId).toBe("w2");
  });
});

// Scenario 53: what harnesses name their sessions by is not meant for engines.
describe("headers that go upstream", () => {
  test("have none that names a session, and all others", () => {
    const headers = HeaderList.ofRaw([
      "authorization",
      "Bearer a",
      "x-request-id",
      "r",
      "content-type",
      "application/json",
    ]);
    for (const name of SESSION_HEADERS) headers.set(name, "s");
    const kept = withoutAffinityHeaders(headers);
    expect([...kept].map(([name]) => name).sort()).toEqual(["authorization", "content-type", "x-request-id"]);
    expect(headers.get("x-session-id")).toBe("s"); // the caller's are as they were
  });

  test.each([
    ["session.id=abc", null],
    ["trace=1,session.id=abc;p=1,other=2;q", "trace=1,other=2;q"],
    ["trace=1, other=2", "trace=1, other=2"],
    ["session.idx=1", "session.idx=1"],
  ])("keep of the baggage %s what names no session", (baggage, kept) => {
    expect(withoutAffinityHeaders(HeaderList.of([["baggage", baggage]])).get("baggage")).toBe(kept);
  });
});
