import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseJson, printJson } from "../../src/http/json.js";
import { type SelectionServer, serveSelection } from "../../src/node/serve-selection.js";
import { SelectionService } from "../../src/selection/service.js";
import { type Send, sender, TOKEN } from "./api-stage.js";

// What does not fit into a double, in raw bodies over a real connection.

const U64_MAX = "18446744073709551615";
const service = new SelectionService();
let server: SelectionServer;
let send: Send;

beforeAll(async () => {
  server = await serveSelection({ service, controlToken: TOKEN });
  send = sender(fetch, server.url);
});
afterAll(() => server.close());

describe("hashes are signed integers of 64 bits", () => {
  test("each keeps its bits on the way in and out", async () => {
    await send("POST", "/workers", `{"worker_id":1,"model_name":"hashes","block_size":4}`);
    const hashes = "[-1,-9223372036854775808,9223372036854775807,0,9007199254740993]";
    const body = `{"model_name":"hashes","selection_id":"h","sequence_hashes":${hashes},"isl_tokens":20}`;
    const { text, status } = await send("POST", "/select_and_reserve", body);
    expect(status).toBe(200);
    expect(text).toContain(`"sequence_hashes":${hashes}`);
    const bits = [2n ** 64n - 1n, 2n ** 63n, 2n ** 63n - 1n, 0n, 2n ** 53n + 1n];
    expect(service.overlapScores({ modelName: "hashes", sequenceHashes: bits, islTokens: 20 })).toMatchObject([
      { overlapBlocks: 5 },
    ]);
  });

  test.each(["9223372036854775808", "-9223372036854775809", "1e19", "0.5"])("%s is none", async (hash) => {
    const body = `{"model_name":"hashes","sequence_hashes":[1,${hash}],"isl_tokens":8}`;
    const reply = await send("POST", "/select", body);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(
      /^Expected sequence_hashes\[1\] to be a whole number from -9223372036854775808 to /,
    );
  });
});

describe("ids of workers go up to 2^64 - 1", () => {
  const lifeOf = async (id: string) => {
    const added = await send("POST", "/workers", `{"worker_id":${id},"model_name":"ids","block_size":4}`);
    const chosen = await send(
      "POST",
      "/select_and_reserve",
      `{"model_name":"ids","token_ids":[1,2,3,4],"pinned_worker":{"worker_id":${id},"dp_rank":0},"allowed_worker_ids":[${id}]}`,
    );
    const { selection_id } = chosen.body;
    const patched = await send("PATCH", `/workers/${id}`, `{"total_kv_blocks":9}`);
    const scores = await send("POST", "/overlap_scores", `{"model_name":"ids","token_ids":[1,2,3,4]}`);
    const loads = await send("GET", "/loads?model_name=ids");
    const freed = await send("DELETE", `/reservations/${selection_id}`);
    const removed = await send("DELETE", `/workers/${id}`);
    return [added, chosen, patched, scores, loads, freed, removed];
  };

  test.each(["0", "1", "9007199254740991", "9007199254740993", "9223372036854775808", U64_MAX])(
    "%s is itself in every answer",
    async (id) => {
      const replies = await lifeOf(id);
      expect(replies.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200, 200]);
      const ids = replies.map(({ text }) => /"worker_id":([^,}]*)/.exec(text)?.[1]);
      expect(ids).toEqual([id, id, id, id, id, undefined, id]);
    },
  );

  test("neighbours that one double stands for are two workers", async () => {
    for (const id of ["18446744073709551614", U64_MAX]) {
      await send("POST", "/workers", `{"worker_id":${id},"model_name":"two","block_size":4}`);
    }
    const { text } = await send("GET", "/workers?model_name=two");
    expect(Array.from(text.matchAll(/"worker_id":(\d+)/g), ([, id]) => id)).toEqual(["18446744073709551614", U64_MAX]);
    const { text: removed } = await send("DELETE", `/workers/${U64_MAX}`);
    expect(removed).toContain(`"worker_id":${U64_MAX},`);
    expect(service.workers.list({ modelName: "two" }).map(({ workerId }) => workerId)).toEqual([2n ** 64n - 2n]);
  });
});

describe("ids that are strings stay strings", () => {
  const json = (id: unknown) => printJson({ worker_id: id, model_name: "strings", block_size: 4 });

  test('"1" beside 1 is another worker', async () => {
    await send("POST", "/workers", json("1"));
    await send("POST", "/workers", json(1));
    const ids = async () =>
      (await send("GET", "/workers?model_name=strings")).body.map((w: { worker_id: unknown }) => w.worker_id);
    expect(await ids()).toEqual(["1", 1]);
    for (const id of ["1", 1]) {
      const { body } = await send("POST", "/select", {
        model_name: "strings",
        token_ids: [1],
        pinned_worker: { worker_id: id },
      });
      expect(body.worker_id).toBe(id);
    }
    expect((await send("PATCH", "/workers/1", { weight: 2 })).body).toMatchObject({ worker_id: 1, weight: 2 });
    expect((await send("PATCH", "/workers/%221%22", { weight: 3 })).body).toMatchObject({ worker_id: "1", weight: 3 });
    await send("DELETE", "/workers/1");
    expect(await ids()).toEqual(["1"]);
    await send("DELETE", '/workers/"1"');
    expect(await ids()).toEqual([]);
  });

  test.each([
    "a",
    "a/b",
    "ä ö",
    "50%",
    "%41",
    "?#&",
    "007",
    "-1",
    "1e3",
    '"',
    '"a',
    "{x}",
    "...",
    "\u0000",
    "😀",
    "\\",
  ])("%j is found by its path", async (id) => {
    expect((await send("POST", "/workers", json(id))).body.worker_id).toBe(id);
    const { body } = await send("DELETE", `/workers/${encodeURIComponent(id)}`);
    expect(body.worker_id).toBe(id);
  });

  test.each(["1", U64_MAX, '"a"', "99999999999999999999999"])("%j is found by its path in quotes", async (id) => {
    await send("POST", "/workers", json(id));
    const { body } = await send("DELETE", `/workers/${encodeURIComponent(JSON.stringify(id))}`);
    expect(body.worker_id).toBe(id);
  });

  test.each(["a/b", "ä ö", "50%", "%41", "?#&", "1", "made by hand", "...", '"q"'])(
    "a selection is called %j as well as anything",
    async (id) => {
      await send("POST", "/workers", json("w"));
      const body = { model_name: "strings", token_ids: [1], selection_id: id };
      expect((await send("POST", "/select_and_reserve", body)).body.selection_id).toBe(id);
      const path = `/reservations/${encodeURIComponent(id)}`;
      expect((await send("POST", `${path}/prefill_complete`)).status).toBe(200);
      expect((await send("DELETE", path)).status).toBe(200);
    },
  );
});

describe("JSON keeps every digit", () => {
  test.each(["-1", "0", "9007199254740991", "9007199254740993", "-9223372036854775808", U64_MAX])("of %s", (text) => {
    expect(printJson(parseJson(text))).toBe(text);
  });

  test("what a number can hold is one, and what is beyond 64 bits is none that passes", () => {
    expect(parseJson("[1, -0, 1.0, 1.5e3, 9007199254740992, 1e400]")).toEqual([1, -0, 1, 1500, 2n ** 53n, Infinity]);
    expect(parseJson("9".repeat(1_000_000))).toBe(Number.POSITIVE_INFINITY);
  });
});
