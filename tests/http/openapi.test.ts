import createClient from "openapi-fetch";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { type SelectionServer, serveSelection } from "../../src/node/serve-selection.js";
import { SelectionService } from "../../src/selection/service.js";
import { ApiStage, TOKEN } from "./api-stage.js";

// biome-ignore-start lint/suspicious/noExplicitAny: the document is read as a client reads it, without types
type Json = any;

const documentOf = async (controlToken?: string): Promise<Json> =>
  (await new ApiStage({ controlToken }).send("GET", "/openapi.json")).body;

const operationsOf = (document: Json) =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({ path, method, operation })),
  );
// biome-ignore-end lint/suspicious/noExplicitAny: the document is read as a client reads it, without types

describe("the OpenAPI document", () => {
  test("is of version 3.1 and lists every operation, each under a name of its own", async () => {
    const document = await documentOf(TOKEN);
    expect(document.openapi).toBe("3.1.0");
    const listed = operationsOf(document).map(({ method, path }) => `${method} ${path}`);
    expect(listed.sort()).toEqual(
      [
        "delete /reservations/{selection_id}",
        "delete /workers/{worker_id}",
        "get /health",
        "get /loads",
        "get /ready",
        "get /workers",
        "patch /workers/{worker_id}",
        "post /overlap_scores",
        "post /potential_loads",
        "post /reservations",
        "post /reservations/{selection_id}/cached_tokens",
        "post /reservations/{selection_id}/output_block",
        "post /reservations/{selection_id}/prefill_complete",
        "post /reservations/{selection_id}/touch",
        "post /select",
        "post /select_and_reserve",
        "post /workers",
      ].sort(),
    );
    const ids = operationsOf(document).map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("says what takes the control token, and is silent of it where there is none", async () => {
    const secured = (document: Json) => operationsOf(document).filter(({ operation }) => operation.security);
    expect(secured(await documentOf(TOKEN)).map(({ operation }) => operation.operationId)).toEqual([
      "addWorker",
      "updateWorker",
      "removeWorker",
    ]);
    const open = await documentOf();
    expect(secured(open)).toEqual([]);
    expect(operationsOf(open).map(({ path }) => path)).not.toContain("/workers/{worker_id}");
  });

  test("describes every parameter of a path, every status, and resolves every reference", async () => {
    const document = await documentOf(TOKEN);
    for (const { path, operation } of operationsOf(document)) {
      const inPath = operation.parameters.filter((parameter: Json) => parameter.in === "path");
      expect(inPath.map(({ name }: Json) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
      for (const answer of Object.values<Json>(operation.responses)) {
        expect(answer.description).toMatch(/\.$/);
        expect(Object.keys(answer.content["application/json"].schema)).not.toEqual([]);
      }
    }
    const references = JSON.stringify(document).match(/"\$ref":"[^"]*"/g) ?? [];
    expect(new Set(references)).toEqual(new Set(['"$ref":"#/components/schemas/Error"']));
    expect(document.components.schemas.Error).toMatchObject({ required: ["error", "code"] });
  });

  test("says of 64-bit integers that they are", async () => {
    const { paths } = await documentOf(TOKEN);
    const { properties, required } = paths["/select"].post.requestBody.content["application/json"].schema;
    expect(required).toBeUndefined();
    expect(properties.sequence_hashes.anyOf[0].items).toEqual({ type: "integer", format: "int64" });
    const ids = properties.allowed_worker_ids.anyOf[0].items.anyOf;
    expect(ids[0]).toEqual({ type: "integer", format: "uint64", minimum: 0 });
    const answer = paths["/select_and_reserve"].post.responses["200"].content["application/json"].schema;
    expect(answer.properties.sequence_hashes.items).toEqual({ type: "integer", format: "int64" });
    expect(answer.required).toContain("worker_id");
    const worker = paths["/workers"].post.requestBody.content["application/json"].schema;
    expect(worker.required).toEqual(["worker_id"]);
  });
});

describe("a client that knows nothing but the document", () => {
  let server: SelectionServer;
  let document: Json;
  beforeAll(async () => {
    server = await serveSelection({ service: new SelectionService(), controlToken: TOKEN });
    document = await (await fetch(`${server.url}/openapi.json`)).json();
  });
  afterAll(() => server.close());

  /** Calls an operation by its name, and checks what comes by the schema that the document has for it. */
  async function call(operationId: string, init: Json = {}): Promise<Json> {
    const found = operationsOf(document).find(({ operation }) => operation.operationId === operationId);
    if (found === undefined) throw new Error(`The document has no ${operationId}.`);
    const { method, path, operation } = found;
    const headers = operation.security === undefined ? {} : { authorization: `Bearer ${TOKEN}` };
    const client = createClient<Json>({ baseUrl: server.url, headers });
    const { data, error, response } = await client.request(method as "get", path as never, init as never);
    expect(error).toBeUndefined();
    const { schema } = operation.responses[response.status].content["application/json"];
    // This client makes doubles of what it reads, and its hashes are whole numbers no more.
    const forDoubles = JSON.parse(JSON.stringify(schema).replaceAll('"integer","format":"int64"', '"number"'));
    expect(z.fromJSONSchema(forDoubles).safeParse(data)).toMatchObject({ success: true });
    return data;
  }

  test("walks from select to delete", async () => {
    await call("addWorker", { body: { worker_id: 7, endpoint: "http://10.0.0.7:8000", block_size: 16 } });
    const prompt = { token_ids: Array.from({ length: 40 }, (_, at) => at) };
    const chosen = await call("select", { body: { ...prompt, selection_id: "mine/1" } });
    expect(chosen).toMatchObject({ worker_id: 7, endpoint: "http://10.0.0.7:8000", effective_prefill_tokens: 40 });
    expect(await call("reserve", { body: { selection_id: "mine/1" } })).toMatchObject({
      worker_id: 7,
      existing: false,
    });
    const params = { path: { selection_id: "mine/1" } };
    const load = async () => (await call("listLoads"))[0].loads[0];
    expect(await load()).toMatchObject({
      potential_prefill_tokens: 40,
      potential_decode_blocks: 2,
      active_requests: 1,
    });
    await call("prefillComplete", { params });
    await call("reportCachedTokens", { params, body: { cached_tokens: 0 } });
    await call("outputBlock", { params, body: { decay_fraction: 1 } });
    await call("touch", { params });
    expect(await load()).toMatchObject({ potential_prefill_tokens: 0, potential_decode_blocks: 3, active_requests: 1 });
    await call("free", { params });
    expect(await load()).toMatchObject({ potential_decode_blocks: 0, active_requests: 0 });
    expect((await call("overlapScores", { body: prompt })).workers).toMatchObject([{ worker_id: 7, device_blocks: 2 }]);
    await call("potentialLoads", { body: prompt });
    const booked = await call("selectAndReserve", { body: prompt });
    await call("free", { params: { path: { selection_id: booked.selection_id } } });
    await call("ready");
    await call("updateWorker", { params: { path: { worker_id: "7" } }, body: { total_kv_blocks: 100 } });
    expect(await call("listWorkers", { params: { query: { model_name: "default" } } })).toHaveLength(1);
    await call("removeWorker", { params: { path: { worker_id: "7" } } });
    expect(await call("health")).toEqual({ status: "ok" });
  });
});
