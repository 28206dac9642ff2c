import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BODY_BYTES_DEFAULT } from "../../src/http/selection-api.js";
import { type SelectionServer, serveSelection } from "../../src/node/serve-selection.js";
import { ApiStage, expectError, type Send, sender, TOKEN } from "./api-stage.js";

const WORKER = { worker_id: 1, endpoint: "http://e", block_size: 16 };

describe("a body that is no JSON is a 400 that says where:", () => {
  const stage = new ApiStage().add({ workerId: 1 });

  test.each([
    ['{"token_ids":[1,]}', "Array item expected but got ']' at position 16"],
    ['{"token_ids":[1]', "but reached end of input at position 16"],
    ["{token_ids:[1]}", "Quoted object key expected but got 't' at position 1"],
    ['{"token_ids":[1]} x', "Expected end of input but got 'x' at position 18"],
    ['{"token_ids":[01]}', "Comma ',' expected"],
    ['{"token_ids":[.5]}', "Array item expected"],
    ['{"token_ids":[NaN]}', "Array item expected"],
    ['{"lora_name":"\n"}', "Invalid character"],
    ['{"lora_name":"\\x"}', "Invalid escape character"],
    ['{"token_ids":[1],"token_ids":[2]}', "Duplicate key 'token_ids' encountered"],
    [`{"${"k".repeat(500)}":1,"${"k".repeat(500)}":2}`, "Duplicate key 'kkkk"],
    ["[".repeat(65), "It is nested deeper than 64 levels"],
  ])("%j", async (raw, reason) => {
    const reply = await stage.send("POST", "/select", raw);
    expectError(reply, 400, "KVROUTE_HTTP_BODY");
    expect(reply.body.error).toMatch(/^Expected a body of JSON, but it cannot be read: /);
    expect(reply.body.error).toContain(reason);
    expect(reply.body.error.length).toBeLessThan(300);
  });

  test("a million levels", async () => {
    const reply = await stage.send("POST", "/select", `{"unknown":${"[".repeat(1_000_000)}`);
    expectError(reply, 400, "KVROUTE_HTTP_BODY");
    expect(reply.body.error).toContain("It is nested deeper than 64 levels");
  });

  test("a body that breaks off", async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("gone")) });
    const init = { method: "POST", body, duplex: "half", headers: { "content-type": "application/json" } };
    const response = await stage.api.fetch(new Request("http://api.test/select", init));
    expect(await response.json()).toEqual({
      error: "Expected a whole body, but it broke off.",
      code: "KVROUTE_HTTP_BODY",
    });
  });

  test("bytes that are not UTF-8", async () => {
    const body = Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d);
    const headers = { "content-type": "application/json" };
    const response = await stage.api.fetch(new Request("http://api.test/select", { method: "POST", body, headers }));
    expect(await response.json()).toEqual({
      error: "Expected a body of JSON, but it cannot be read: it is not UTF-8.",
      code: "KVROUTE_HTTP_BODY",
    });
  });
});

describe("a body that is JSON is read", () => {
  const stage = new ApiStage().add({ workerId: 1 });
  const select = (raw: string, headers?: Record<string, string>) => stage.send("POST", "/select", raw, headers);

  test("with 64 levels, in what nobody knows", async () => {
    const deep = `{"unknown":${"[".repeat(63)}${"]".repeat(63)},"text":"[\\"${"{".repeat(65)}","token_ids":[1]}`;
    expect((await select(deep)).status).toBe(200);
  });

  test("with keys that mean something to JavaScript", async () => {
    const raw = '{"__proto__":{"selection_id":5},"constructor":1,"toString":null,"token_ids":[1]}';
    expect((await select(raw)).status).toBe(200);
    expect(stage.service.stats().pendingSelections).toBe(0);
  });

  test("with the same key twice, if it says the same", async () => {
    expect((await select('{"token_ids":[1],"token_ids":[1]}')).status).toBe(200);
  });

  test.each(["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"])(
    "as %s",
    async (type) => expect((await select('{"token_ids":[1]}', { "content-type": type })).status).toBe(200),
  );

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data"])(
    "but not as %s, 415: a page of any site could send it",
    async (type) =>
      expectError(await select('{"token_ids":[1]}', { "content-type": type }), 415, "KVROUTE_HTTP_MEDIA_TYPE"),
  );

  test("and one without a type is none", async () => {
    const body = new TextEncoder().encode('{"token_ids":[1]}');
    const response = await stage.api.fetch(new Request("http://api.test/select", { method: "POST", body }));
    expect(response.status).toBe(415);
    expect((await response.json()).error).toBe("Expected the content-type application/json, got none.");
  });

  test("an empty one is missing", async () => {
    const reply = await stage.send("POST", "/select", "");
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error).toBe("Expected the body to be an object, but it is missing.");
  });
});

describe("over a connection", () => {
  const stage = new ApiStage();
  let server: SelectionServer;
  let send: Send;
  beforeAll(async () => {
    server = await serveSelection({ service: stage.service, controlToken: TOKEN });
    send = sender(fetch, server.url);
    await send("POST", "/workers", WORKER);
  });
  afterAll(() => server.close());

  /** A request of exactly so many bytes: as many tokens as fit, and blanks. */
  const padded = (bytes: number) => `{"token_ids":[${"7,".repeat(1_000)}7]}`.padEnd(bytes, " ");

  test("a body of 8 MiB is served, one of a byte more is refused, 413", async () => {
    expect((await send("POST", "/select", padded(BODY_BYTES_DEFAULT))).status).toBe(200);
    const reply = await send("POST", "/select", padded(BODY_BYTES_DEFAULT + 1));
    expectError(reply, 413, "KVROUTE_HTTP_TOO_LARGE");
    expect(reply.body.error).toBe("Expected a body of at most 8388608 bytes, got one of 8388609.");
    expect((await send("GET", "/health")).status).toBe(200);
  });

  test("8 MiB of tokens are served", async () => {
    const count = (BODY_BYTES_DEFAULT - 20) / 2;
    const raw = `{"token_ids":[${"7,".repeat(count - 1)}7]}`;
    expect((await send("POST", "/select", raw)).body.effective_prefill_tokens).toBe(count);
  });

  test("a body whose length nobody has stated is counted as it comes, and no further than the limit", async () => {
    const status = await new Promise<number>((resolve, reject) => {
      const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
      const sent = httpRequest(`${server.url}/select`, { method: "POST", headers }, ({ statusCode }) => {
        resolve(statusCode ?? 0);
        sent.destroy();
      });
      sent.on("error", reject);
      const more = () => {
        while (sent.write(" ".repeat(65_536))); // without end
        sent.once("drain", more);
      };
      more();
    });
    expect(status).toBe(413);
  });
});

test("the limit can be set, and counts bytes", async () => {
  const { send } = new ApiStage({ maxBodyBytes: 20 }).add({ workerId: 1 });
  expect((await send("POST", "/select", '{"token_ids":[1,2]}')).status).toBe(200);
  expect((await send("POST", "/select", '{"token_ids":[1,2] }')).status).toBe(200);
  expect((await send("POST", "/select", '{"token_ids":[1,2]  }')).status).toBe(413);
  expect((await send("POST", "/select", '{"x":"ääääääää"}')).status).toBe(413);
});

/** What schemas that note every mistake take a gigabyte for at the limit of 8 MiB. */
const MISTAKES_BYTES = 2 * 2 ** 20;

describe("2 MiB of nothing but mistakes are refused at the first of them:", () => {
  const { send } = new ApiStage();
  const fill = (open: string, item: (at: number) => string, close: string) => {
    const items: string[] = [];
    for (let length = 0; length < MISTAKES_BYTES; length += (items.at(-1)?.length ?? 0) + 1) {
      items.push(item(items.length));
    }
    return open + items.join() + close;
  };

  test.each([
    ["token_ids", "/select", fill('{"token_ids":[', () => "{}", "]}"), /^Expected token_ids\[0\] /],
    [
      "sequence_hashes",
      "/select",
      fill('{"sequence_hashes":[', () => "{}", "]}"),
      /^Expected sequence_hashes to be a list of at most /,
    ],
    [
      "allowed_worker_ids",
      "/select",
      fill('{"allowed_worker_ids":[', () => "-1", "]}"),
      /^Expected allowed_worker_ids to be a list of at most /,
    ],
    [
      "required_taints",
      "/select",
      fill('{"routing_constraints":{"required_taints":[', () => "1", "]}}"),
      /required_taints to be a list of at most 64/,
    ],
    [
      "preferred_taints",
      "/select",
      fill('{"routing_constraints":{"preferred_taints":{', (at) => `"${at}":[]`, "}}}"),
      /preferred_taints to be an object of at most 64/,
    ],
    [
      "topology_domains",
      "/workers",
      fill('{"worker_id":1,"topology_domains":{', (at) => `"${at}":1`, "}}"),
      /^Expected topology_domains to be an object of at most 1024/,
    ],
    [
      "block_mm_infos",
      "/select",
      fill('{"block_mm_infos":[', () => "{}", "]}"),
      /^Expected block_mm_infos to be absent/,
    ],
  ])("%s", async (_, path, raw, sentence) => {
    const before = process.memoryUsage().heapUsed;
    const reply = await send("POST", path, raw);
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error).toMatch(sentence);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(150 * 2 ** 20);
  });
});
