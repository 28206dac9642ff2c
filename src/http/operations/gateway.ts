import { HeaderList } from "../../gateway/header-list.js";
import type { Router } from "../../gateway/router.js";
import { ok } from "../answer.js";
import type { GatewayWorkers } from "../gateway-workers.js";
import { printJson } from "../json.js";
import { type Operation, operation } from "../operation.js";
import {
  explainAnswer,
  explainBody,
  gatewayReadyAnswer,
  gatewayUpdateBody,
  gatewayWorkerBody,
} from "../schemas/gateway.js";
import { figuresOf } from "../schemas/workers.js";
import { reservationOperations } from "./reservations.js";
import { selectionOperations } from "./selection.js";
import { stateOperations } from "./state.js";
import { addingWorkers, changingWorkers, workerOperations } from "./workers.js";

const encoder = /* @__PURE__ */ new TextEncoder();

/** What a router answers otherwise than a selection service does that stands alone. */
const REPLACED = ["addWorker", "updateWorker", "ready"];

/**
 * Lists what a router can be asked beside its gateway. All but its health takes the token: bookings move the requests of
 * others, what is cached tells what they have asked, and workers say where they listen.
 */
export function gatewayOperations(router: Router, workers: GatewayWorkers): Operation[] {
  const kept = [...workerOperations, ...selectionOperations, ...reservationOperations, ...stateOperations]
    .filter(({ id }) => !REPLACED.includes(id))
    .map((one) => ({ ...one, isControl: one.id !== "health" }));
  return [addOf(workers), updateOf(workers), ...kept, readyOf(router), explainOf(router)];
}

const addOf = (workers: GatewayWorkers) =>
  addingWorkers(
    gatewayWorkerBody,
    "Adds a worker, or replaces the one with its id, which then starts empty.",
    ({ body }) => {
      const { worker_id: workerId, endpoint, block_size: blockSize, models, max_in_flight: maxInFlight } = body;
      return workers.add({ workerId, endpoint, blockSize, models, maxInFlight, ...figuresOf(body) });
    },
  );

const updateOf = (workers: GatewayWorkers) =>
  changingWorkers(gatewayUpdateBody, [404], ({ body }, workerId) => workers.update(workerId, figuresOf(body)));

const readyOf = (router: Router) =>
  operation({
    id: "ready",
    method: "GET",
    path: "/ready",
    summary: "Says whether a request could be served now: the gateway is open, and some worker can have it.",
    answers: { 200: gatewayReadyAnswer, 503: gatewayReadyAnswer },
    run: () => ({ status: router.isReady ? 200 : 503, value: { ready: router.isReady } }),
  });

const explainOf = (router: Router) =>
  operation({
    id: "explain",
    method: "POST",
    path: "/explain",
    summary: "Says where a request to the gateway would go now, and why. Books nothing.",
    isControl: true,
    body: explainBody,
    answers: { 200: explainAnswer },
    errors: [404, 503],
    run: async ({ body: { path, headers = {}, body } }) => {
      const list = HeaderList.of(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const));
      const bytes = encoder.encode(typeof body === "string" ? body : body === undefined ? "" : printJson(body));
      return ok(await router.explain({ method: "POST", path, query: "", headers: list, bytes }));
    },
  });
