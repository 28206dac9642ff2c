import type { WorkerId } from "../../core/keys.js";
import { workerKey } from "../../core/worker-key.js";
import type { OverlapScore, PotentialLoad } from "../../selection/service.js";
import { done, ok } from "../answer.js";
import { operation } from "../operation.js";
import { doneAnswer, loadsAnswer, overlapScoresAnswer, potentialLoadsAnswer, readyAnswer } from "../schemas/answers.js";
import { promptBody, promptLengthOf, promptOf } from "../schemas/prompt.js";
import { rankWire } from "./selection.js";
import { partitionOf, workerWire } from "./workers.js";

export const stateOperations = [
  operation({
    id: "listLoads",
    method: "GET",
    path: "/loads",
    summary: "Says what is booked on each worker, draining ones included.",
    query: ["model_name", "routing_group"],
    answers: { 200: loadsAnswer },
    run: ({ service, query }) =>
      ok(
        service.loads(partitionOf(query)).map(({ modelName, routingGroup, loads }) => ({
          model_name: modelName,
          routing_group: routingGroup,
          loads: loads.map(({ activePrefillTokens, activeBlocks, ...load }) =>
            loadWire({ ...load, potentialPrefillTokens: activePrefillTokens, potentialDecodeBlocks: activeBlocks }),
          ),
          pending_count: 0, // nothing waits here: a request is chosen for, or refused
          pending_isl_tokens: 0,
        })),
      ),
  }),
  operation({
    id: "potentialLoads",
    method: "POST",
    path: "/potential_loads",
    summary: "Says what each worker that can be chosen would have to do if it took a prompt.",
    body: promptBody,
    answers: { 200: potentialLoadsAnswer },
    errors: [503],
    run: ({ service, body }) => ok(service.potentialLoads(promptOf(body)).map(loadWire)),
  }),
  operation({
    id: "overlapScores",
    method: "POST",
    path: "/overlap_scores",
    summary: "Says how much of a prompt each worker holds that holds any of it.",
    body: promptBody,
    answers: { 200: overlapScoresAnswer },
    errors: [503],
    run: ({ service, body }) => {
      const prompt = promptOf(body);
      const scores = service.overlapScores(prompt);
      const { modelName = "default", routingGroup = "default" } = prompt;
      const blockSize = service.workers.partition({ modelName, routingGroup })?.blockSize ?? 1; // it has scores, so it has one
      const blocks = prompt.tokenIds === undefined ? prompt.sequenceHashes?.length : undefined;
      return ok({
        block_size: blockSize,
        num_blocks: blocks ?? Math.floor(promptLengthOf(body) / blockSize),
        workers: scores.sort(byWorker).map(scoreWire),
        shared_cache: { enabled: false, total_hit_blocks: 0, ranges: [], error: null },
      });
    },
  }),
  operation({
    id: "health",
    method: "GET",
    path: "/health",
    summary: "Says that the service is alive.",
    answers: { 200: doneAnswer },
    run: done,
  }),
  operation({
    id: "ready",
    method: "GET",
    path: "/ready",
    summary: "Says whether any worker can be chosen.",
    answers: { 200: readyAnswer, 503: readyAnswer },
    run: ({ service }) => {
      const workers = service.workers.list().map(workerWire);
      const schedulable = workers.filter(({ lifecycle }) => lifecycle === "schedulable").length;
      const ready = schedulable > 0;
      return { status: ready ? 200 : 503, value: { ready, schedulable_workers: schedulable, workers } };
    },
  }),
];

function loadWire({ worker, potentialPrefillTokens, potentialDecodeBlocks, activeRequests }: PotentialLoad) {
  return {
    ...rankWire(worker),
    potential_prefill_tokens: potentialPrefillTokens,
    potential_decode_blocks: Math.round(potentialDecodeBlocks),
    active_requests: activeRequests,
  };
}

// Of the tiers below the device's memory nothing is known, so that they add nothing.
function scoreWire({ worker, overlapBlocks }: OverlapScore) {
  return {
    ...rankWire(worker),
    device_blocks: overlapBlocks,
    host_pinned_blocks: overlapBlocks,
    disk_blocks: overlapBlocks,
    host_pinned_extension_blocks: 0,
    disk_extension_blocks: 0,
    shared_beyond_device_blocks: null,
    router_credit_blocks: overlapBlocks,
  };
}

/** Orders by id, numbers before strings. The ranks of a worker come in their order. */
function byWorker({ worker: a }: OverlapScore, { worker: b }: OverlapScore): number {
  return compare(a.workerId, b.workerId);
}

function compare(a: WorkerId, b: WorkerId): number {
  const keys = [workerKey(a), workerKey(b)] as const;
  const texts = keys.map((key) => Number(typeof key === "string")) as [number, number];
  return texts[0] - texts[1] || Number(keys[0] > keys[1]) - Number(keys[0] < keys[1]);
}
