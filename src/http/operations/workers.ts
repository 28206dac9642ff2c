import type * as z from "zod";
import type { WorkerId } from "../../core/keys.js";
import type { WorkerRecord } from "../../selection/workers.js";
import { ok } from "../answer.js";
import { checked } from "../check.js";
import { type Call, operation } from "../operation.js";
import { workerAnswer, workersAnswer } from "../schemas/answers.js";
import { object, workerId } from "../schemas/fields.js";
import { workerBody, workerUpdateBody, workerUpdateOf } from "../schemas/workers.js";

const pathSchema = object({ worker_id: workerId });

/** Describes how workers are added, whatever is said of them. */
export const addingWorkers = <Body extends z.ZodType>(
  body: Body,
  summary: string,
  add: (call: Call<z.output<Body>>) => WorkerRecord,
) =>
  operation({
    id: "addWorker",
    method: "POST",
    path: "/workers",
    summary,
    isControl: true,
    body,
    answers: { 201: workerAnswer },
    errors: [429],
    run: (call) => ({ status: 201, value: workerWire(add(call)) }),
  });

/** Describes how workers are changed. */
export const changingWorkers = <Body extends z.ZodType<{ readonly lifecycle?: unknown }>>(
  body: Body,
  errors: readonly number[],
  update: (call: Call<z.output<Body>>, workerId: WorkerId) => WorkerRecord,
) =>
  operation({
    id: "updateWorker",
    method: "PATCH",
    path: "/workers/{worker_id}",
    summary: "Changes what is given of a worker. With the lifecycle draining it has no more requests.",
    isControl: true,
    body,
    answers: { 200: workerAnswer },
    errors,
    run: (call) => {
      const workerId = workerIdOf(call.segment);
      const record = update(call, workerId);
      return ok(workerWire(call.body.lifecycle === "draining" ? call.workers.drain(workerId) : record));
    },
  });

export const workerOperations = [
  addingWorkers(workerBody, "Adds a worker, or replaces the one with its id.", ({ workers, body }) =>
    workers.add({ workerId: body.worker_id, ...workerUpdateOf(body) }),
  ),
  operation({
    id: "listWorkers",
    method: "GET",
    path: "/workers",
    summary: "Lists workers in the order in which they were first added.",
    query: ["model_name", "routing_group"],
    answers: { 200: workersAnswer },
    run: ({ service, query }) => ok(service.workers.list(partitionOf(query)).map(workerWire)),
  }),
  changingWorkers(workerUpdateBody, [404, 429], ({ workers, body }, workerId) =>
    workers.update(workerId, workerUpdateOf(body)),
  ),
  operation({
    id: "removeWorker",
    method: "DELETE",
    path: "/workers/{worker_id}",
    summary: "Removes a worker and ends its bookings. Answers with its last record.",
    isControl: true,
    answers: { 200: workerAnswer },
    errors: [404],
    run: ({ workers, segment }) => ok(workerWire(workers.remove(workerIdOf(segment)))),
  }),
];

/** Reads the filter of a query: what it does not name is not filtered by. */
export function partitionOf(query: Call<unknown>["query"]) {
  const modelName = query.get("model_name");
  const routingGroup = query.get("routing_group");
  return { ...(modelName !== null && { modelName }), ...(routingGroup !== null && { routingGroup }) };
}

/** Reads the id of a worker from a path: digits are a number, a string in quotes is one whatever it looks like. */
export function workerIdOf(segment: string): WorkerId {
  return checked(pathSchema, { worker_id: idOf(segment) }).worker_id;
}

function idOf(segment: string): string | bigint {
  if (/^(?:0|[1-9]\d{0,19})$/.test(segment)) return BigInt(segment);
  if (!/^".*"$/s.test(segment)) return segment;
  try {
    return JSON.parse(segment) as string;
  } catch {
    return segment; // quotes at both ends that are part of the name
  }
}

/** Writes the record of a worker into an answer. */
export function workerWire(record: WorkerRecord) {
  const { notSchedulableReasons: reasons } = record;
  return {
    worker_id: record.workerId,
    model_name: record.modelName,
    routing_group: record.routingGroup,
    endpoint: record.endpoint,
    block_size: record.blockSize,
    data_parallel_start_rank: record.dataParallelStartRank,
    data_parallel_size: record.dataParallelSize,
    max_num_batched_tokens: record.maxNumBatchedTokens,
    total_kv_blocks: record.totalKvBlocks,
    weight: record.weight,
    taints: record.taints,
    lifecycle: record.lifecycle,
    not_schedulable_reasons:
      reasons.length === 0 ? undefined : reasons.map((reason) => reason.replaceAll("blockSize", "block_size")),
  };
}
