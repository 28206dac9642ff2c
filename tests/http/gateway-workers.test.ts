import { describe, expect, test } from "vitest";
import * as answers from "../../src/http/schemas/answers.js";
import { expectAnswer, expectError } from "./api-stage.js";
import { GatewayStage, MODEL } from "./gateway-stage.js";

const WORKER = { worker_id: "b", endpoint: "http://b.test" };

describe("POST /workers", () => {
  test("adds a worker to the router, which has requests from then on", async () => {
    const stage = new GatewayStage({}, { workers: [] });
    const more = { weight: 2, total_kv_blocks: 100, max_num_batched_tokens: 512, taints: ["x"] };
    const record = expectAnswer(
      await stage.send("POST", "/workers", { ...WORKER, ...more }),
      201,
      answers.workerAnswer,
    );
    expect(record).toMatchObject({ ...WORKER, ...more, block_size: 64, lifecycle: "schedulable" });
    expect(stage.router.stats().workers).toMatchObject([{ id: "b" }]);
    expect((await stage.chat()).status).toBe(200);
    expect(stage.asked).toEqual(["http://b.test/v1/chat/completions"]);
    expect((await stage.send("GET", "/workers")).body).toEqual([record]);
  });

  test("takes the models that a worker serves, and how many requests it takes", async () => {
    const stage = new GatewayStage({}, { workers: [] });
    await stage.send("POST", "/workers", { ...WORKER, models: ["other"], max_in_flight: 1 });
    expect((await stage.chat()).body.error.code).toBe("KVROUTE_GATEWAY_MODEL");
    await stage.send("POST", "/workers", { ...WORKER, models: [MODEL] });
    expect((await stage.chat()).status).toBe(200);
  });

  test("replaces the one with its id, which starts empty, and has requests again if it was draining", async () => {
    const stage = new GatewayStage();
    await stage.chat("Tell me of the gardens. ".repeat(40));
    expect(stage.router.stats().selection.index.entries).toBeGreaterThan(0);
    await stage.router.drain("a");
    const reply = await stage.send("POST", "/workers", { worker_id: "a", endpoint: "http://new.test/v1/" });
    expect(reply).toMatchObject({ status: 201, body: { endpoint: "http://new.test", lifecycle: "schedulable" } });
    expect(stage.router.stats()).toMatchObject({ workers: [{ id: "a", isDraining: false }] });
    expect(stage.router.stats().selection.index.entries).toBe(0);
    await stage.chat();
    expect(stage.asked.at(-1)).toBe("http://new.test/v1/chat/completions");
  });

  test.each([
    ["no endpoint", { endpoint: undefined }, "endpoint"],
    ["an endpoint that is no URL", { endpoint: "10.0.0.1:8000" }, "url"],
    ["an endpoint of another scheme", { endpoint: "file:///etc/passwd" }, "url"],
    ["an endpoint with credentials", { endpoint: "http://me:secret@b.test" }, "url"],
    ["an id that is a number", { worker_id: 7 }, "worker_id"],
    ["another model than the default", { model_name: "m" }, "model_name"],
    ["another group than the default", { routing_group: "g" }, "routing_group"],
    ["several ranks", { data_parallel_size: 2 }, "data_parallel_size"],
    ["a rank that is not the first", { data_parallel_start_rank: 1 }, "data_parallel_start_rank"],
    ["Eagle", { is_eagle: true }, "is_eagle"],
    ["no models at all", { models: [] }, "models"],
    ["a model without a name", { models: [""] }, "models[0]"],
    ["no requests at all", { max_in_flight: 0 }, "max_in_flight"],
    ["a weight beyond all measure", { weight: 1e9 }, "weight"],
    ["blocks of another size", { block_size: 16 }, "block_size"],
  ])("refuses %s and changes nothing, be the worker new or not", async (_, wrong, field) => {
    const stages = [new GatewayStage(), new GatewayStage({}, { workers: [] })];
    for (const stage of stages) {
      for (const worker_id of ["a", "b"]) {
        const before = stage.state();
        const reply = await stage.send("POST", "/workers", { ...WORKER, worker_id, ...wrong });
        expect(reply.status).toBe(400);
        expect(reply.body.error).toContain(field);
        expect(reply.text).not.toContain("secret");
        expect(stage.state()).toBe(before);
      }
    }
  });

  test("takes what Dynamo's workers say where it is the same", async () => {
    const { send } = new GatewayStage();
    const same = { model_name: "default", routing_group: "default", data_parallel_size: 1, block_size: 64 };
    const unused = { data_parallel_start_rank: 0, kv_events_endpoint: "tcp://h:1", is_eagle: false };
    expect((await send("POST", "/workers", { ...WORKER, ...same, ...unused })).status).toBe(201);
  });
});

describe("PATCH /workers", () => {
  test("with the lifecycle draining drains: the worker has no more requests", async () => {
    const stage = new GatewayStage();
    const reply = await stage.send("PATCH", "/workers/a", { lifecycle: "draining" });
    expect(expectAnswer(reply, 200, answers.workerAnswer).lifecycle).toBe("draining");
    expect(stage.router.stats().workers).toMatchObject([{ id: "a", isDraining: true }]);
    expect((await stage.chat()).status).toBe(503);
    expect((await stage.send("GET", "/ready")).status).toBe(503);
    expect((await stage.send("PATCH", "/workers/a", { lifecycle: "draining" })).status).toBe(200);
  });

  test("changes the figures of a worker", async () => {
    const { send } = new GatewayStage();
    const figures = { weight: 3, total_kv_blocks: 7, max_num_batched_tokens: 9, taints: ["x"] };
    expect((await send("PATCH", "/workers/a", figures)).body).toMatchObject({ ...figures, lifecycle: "schedulable" });
    expect((await send("PATCH", "/workers/a", {})).body).toMatchObject(figures);
  });

  test.each([
    { endpoint: "http://b.test" },
    { block_size: 64 },
    { models: ["m"] },
    { max_in_flight: 1 },
    { model_name: "m" },
    { lifecycle: "schedulable" },
  ])("refuses %j, with whatever else is given", async (wrong) => {
    const stage = new GatewayStage();
    const before = stage.state();
    expectError(await stage.send("PATCH", "/workers/a", { weight: 3, ...wrong }), 400, "KVROUTE_HTTP_FIELD");
    expect(stage.state()).toBe(before);
  });

  test("of nobody is a 404", async () => {
    const { send } = new GatewayStage();
    expectError(await send("PATCH", "/workers/b", { lifecycle: "draining" }), 404, "KVROUTE_UNKNOWN_WORKER");
    expectError(await send("DELETE", "/workers/b"), 404, "KVROUTE_UNKNOWN_WORKER");
  });
});

describe("DELETE /workers", () => {
  test("removes a worker from the router, and answers with its last record", async () => {
    const stage = new GatewayStage();
    const record = expectAnswer(await stage.send("DELETE", "/workers/a"), 200, answers.workerAnswer);
    expect(record).toMatchObject({ worker_id: "a", lifecycle: "unschedulable" });
    expect(stage.router.stats().workers).toEqual([]);
    expect((await stage.send("GET", "/workers")).body).toEqual([]);
  });

  test("and PATCH find a worker whose name is digits, with quotes or without", async () => {
    for (const path of ["/workers/7", "/workers/%227%22"]) {
      const { send, router } = new GatewayStage({}, { workers: [{ id: "7", url: "http://seven.test" }] });
      expect((await send("PATCH", path, { weight: 2 })).body).toMatchObject({ worker_id: "7", weight: 2 });
      expect((await send("DELETE", path)).status).toBe(200);
      expect(router.stats().workers).toEqual([]);
    }
  });
});

describe("a worker that only one of the two knows", () => {
  test("which the program has put into the books alone, is drained, removed and replaced there", async () => {
    const { send, router } = new GatewayStage();
    const put = () => router.selection.workers.add({ workerId: "b", blockSize: 64 });
    put();
    expect((await send("PATCH", "/workers/b", { lifecycle: "draining" })).body).toMatchObject({
      lifecycle: "draining",
    });
    expect((await send("DELETE", "/workers/b")).body).toMatchObject({ worker_id: "b", lifecycle: "unschedulable" });
    expect((await send("GET", "/workers")).body).toMatchObject([{ worker_id: "a" }]);
    put();
    expect((await send("POST", "/workers", WORKER)).status).toBe(201);
    expect(router.stats().workers).toMatchObject([{ id: "a" }, { id: "b" }]);
    expect((await send("DELETE", "/workers/b")).status).toBe(200);
    expect(router.stats().workers).toMatchObject([{ id: "a" }]);
  });

  test("which the program has taken out of the books, is unknown, and can be added again", async () => {
    const { send, router } = new GatewayStage();
    router.selection.workers.remove("a");
    expectError(await send("PATCH", "/workers/a", { weight: 2 }), 404, "KVROUTE_UNKNOWN_WORKER");
    expectError(await send("DELETE", "/workers/a"), 404, "KVROUTE_UNKNOWN_WORKER");
    expect((await send("POST", "/workers", { worker_id: "a", endpoint: "http://new.test" })).status).toBe(201);
    expect(router.stats().workers).toMatchObject([{ id: "a" }]);
    expect((await send("GET", "/workers")).body).toMatchObject([{ worker_id: "a", endpoint: "http://new.test" }]);
  });
});
