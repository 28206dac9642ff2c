import { describe, expect, test } from "vitest";
import * as answers from "../../src/http/schemas/answers.js";
import { ApiStage, expectAnswer, expectError } from "./api-stage.js";

const WORKER = { worker_id: 1, endpoint: "http://10.0.0.1:8000", block_size: 4 };

describe("workers", () => {
  test("POST adds one and answers with its record, 201", async () => {
    const { send } = new ApiStage();
    const worker = {
      ...WORKER,
      model_name: "m",
      routing_group: "g",
      data_parallel_start_rank: 2,
      data_parallel_size: 3,
    };
    const more = { max_num_batched_tokens: 8192, total_kv_blocks: 1000, taints: ["x"], weight: 2.5 };
    const record = expectAnswer(await send("POST", "/workers", { ...worker, ...more }), 201, answers.workerAnswer);
    expect(record).toEqual({ ...worker, ...more, lifecycle: "schedulable" });
  });

  test("POST with an id that is there replaces the record", async () => {
    const { send } = new ApiStage();
    await send("POST", "/workers", { ...WORKER, taints: ["x"] });
    await send("POST", "/workers", { ...WORKER, model_name: "other" });
    const { body } = await send("GET", "/workers");
    expect(body).toMatchObject([{ worker_id: 1, model_name: "other", taints: [] }]);
  });

  test("POST of a worker that lacks something registers it, incomplete, and says what", async () => {
    const { send } = new ApiStage({}, { requireEndpoint: true });
    const record = expectAnswer(await send("POST", "/workers", { worker_id: 1 }), 201, answers.workerAnswer);
    expect(record.lifecycle).toBe("incomplete");
    expect(record.not_schedulable_reasons).toEqual(["it has no endpoint", "it has no block_size"]);
  });

  test("GET lists them, those of a model, or of a group", async () => {
    const { send } = new ApiStage().add({ workerId: 1, modelName: "m" }, { workerId: 2, routingGroup: "g" }, "c");
    const ids = async (query: string) => {
      const list = expectAnswer(await send("GET", `/workers${query}`), 200, answers.workersAnswer);
      return list.map((worker: { worker_id: unknown }) => worker.worker_id);
    };
    expect(await ids("")).toEqual([1, 2, "c"]);
    expect(await ids("?model_name=m")).toEqual([1]);
    expect(await ids("?routing_group=g")).toEqual([2]);
    expect(await ids("?model_name=default&routing_group=default")).toEqual(["c"]);
    expect(await ids("?model_name=none")).toEqual([]);
  });

  test("PATCH changes what is given and nothing else; null is nothing", async () => {
    const { send } = new ApiStage();
    await send("POST", "/workers", { ...WORKER, taints: ["x"] });
    const reply = await send("PATCH", "/workers/1", { total_kv_blocks: 7, endpoint: null });
    const record = expectAnswer(reply, 200, answers.workerAnswer);
    expect(record).toMatchObject({ ...WORKER, total_kv_blocks: 7, taints: ["x"] });
    expectError(await send("PATCH", "/workers/2", {}), 404, "KVROUTE_UNKNOWN_WORKER");
  });

  test("PATCH with the lifecycle draining leaves a worker what it has and gives it nothing more", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const reply = await send("PATCH", "/workers/1", { lifecycle: "draining", weight: 2 });
    const record = expectAnswer(reply, 200, answers.workerAnswer);
    expect(record).toMatchObject({ lifecycle: "draining", weight: 2 });
    expectError(await send("POST", "/select", { token_ids: [1] }), 503, "KVROUTE_NO_WORKER");
    expectError(await send("PATCH", "/workers/1", { lifecycle: "schedulable" }), 400, "KVROUTE_HTTP_FIELD");
    expectError(await send("PATCH", "/workers/2", { lifecycle: "draining" }), 404, "KVROUTE_UNKNOWN_WORKER");
  });

  test("DELETE answers with the last record; the second time there is none", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const record = expectAnswer(await send("DELETE", "/workers/1"), 200, answers.workerAnswer);
    expect(record).toMatchObject({
      worker_id: 1,
      lifecycle: "unschedulable",
      not_schedulable_reasons: ["it was removed"],
    });
    expectError(await send("DELETE", "/workers/1"), 404, "KVROUTE_UNKNOWN_WORKER");
  });

  test("more than there may be are refused, 429", async () => {
    const { send } = new ApiStage({}, { maxWorkers: 1 }).add("a");
    expectError(await send("POST", "/workers", WORKER), 429, "KVROUTE_CATALOG_FULL");
    expect((await send("PATCH", "/workers/a", { endpoint: "e" })).status).toBe(200);
  });

  test("fields of Dynamo that are not used here are taken and not kept", async () => {
    const { send } = new ApiStage();
    const unused = {
      kv_events_endpoint: "tcp://h:1",
      kv_events_endpoints: { "0": "tcp://h:1" },
      replay_endpoint: "tcp://h:2",
      stable_routing_id: "s",
      is_eagle: false,
      topology_domains: { zone: "a" },
      kv_transfer_domain: "zone",
      kv_transfer_enforcement: "preferred",
      kv_transfer_preferred_weight: 0.5,
      router_hint_worker_type: "t",
      router_hint_source_control_endpoints: { "0": "e" },
      what_is_this: [1, { deep: true }],
    };
    const record = expectAnswer(await send("POST", "/workers", { ...WORKER, ...unused }), 201, answers.workerAnswer);
    expect(Object.keys(unused).filter((key) => key in record)).toEqual([]);
  });
});
