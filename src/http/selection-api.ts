import { OptionError } from "../errors.js";
import { SelectionService } from "../selection/service.js";
import type { Operation } from "./operation.js";
import { reservationOperations } from "./operations/reservations.js";
import { selectionOperations } from "./operations/selection.js";
import { stateOperations } from "./operations/state.js";
import { workerOperations } from "./operations/workers.js";
import { appOf, checkServing, type ServingOptions } from "./operations-app.js";

export { BODY_BYTES_DEFAULT } from "./operations-app.js";

export interface SelectionApiOptions extends ServingOptions {
  readonly service: SelectionService;
  /** Opens what changes workers to those who send it as a bearer token. Without it these paths are not there. */
  readonly controlToken?: string | undefined;
}

/** The selection service over HTTP. */
export interface SelectionApi {
  /** Answers a request, whatever is wrong with it. It can be mounted wherever a fetch handler can. */
  readonly fetch: (request: Request, env?: unknown, context?: unknown) => Promise<Response>;
}

export const API_VERSION = "1.0.0";

const OPERATIONS: readonly Operation[] = [
  ...workerOperations,
  ...selectionOperations,
  ...reservationOperations,
  ...stateOperations,
];

const DESCRIPTION =
  "Chooses and books workers by KV cache and load, with the names of NVIDIA Dynamo's selection service.";

/**
 * Puts a selection service behind HTTP, with the names of Dynamo's.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function createSelectionApi(options: SelectionApiOptions): SelectionApi {
  const { service } = options;
  if (!(service instanceof SelectionService)) throw new OptionError("Expected service to be a SelectionService.");
  checkServing(options);
  const about = { title: "kvroute selection API", version: API_VERSION, description: DESCRIPTION };
  const app = appOf({ ...options, operations: OPERATIONS, workers: service.workers, about });
  return { fetch: async (request, env, context) => app.fetch(request, env as object, context as never) };
}
