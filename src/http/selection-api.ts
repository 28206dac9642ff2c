import { type Context, Hono } from "hono";
import { HttpRequestError, KvrouteError, OptionError } from "../errors.js";
import { SelectionService } from "../selection/service.js";
import { type Answer, errorResponse, responseOf } from "./answer.js";
import { readJson } from "./body.js";
import { checked } from "./check.js";
import { openApiOf } from "./openapi.js";
import type { Operation } from "./operation.js";
import { reservationOperations } from "./operations/reservations.js";
import { selectionOperations } from "./operations/selection.js";
import { stateOperations } from "./operations/state.js";
import { workerOperations } from "./operations/workers.js";
import { authorize, checkToken } from "./token.js";

export interface SelectionApiOptions {
  readonly service: SelectionService;
  /** Opens what changes workers to those who send it as a bearer token. Without it these paths are not there. */
  readonly controlToken?: string | undefined;
  /** Bytes of a request's body. Default 8 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Is told of what is answered with a 500. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The selection service over HTTP. */
export interface SelectionApi {
  /** Answers a request, whatever is wrong with it. It can be mounted wherever a fetch handler can. */
  readonly fetch: (request: Request, env?: unknown, context?: unknown) => Promise<Response>;
}

export const BODY_BYTES_DEFAULT = 8 * 2 ** 20;
export const BODY_BYTES_MAX = 2 ** 30;
const API_VERSION = "1.0.0";
const DOCUMENT = "/openapi.json";

const OPERATIONS: readonly Operation[] = [
  ...workerOperations,
  ...selectionOperations,
  ...reservationOperations,
  ...stateOperations,
];

/**
 * Puts a selection service behind HTTP, with the names of Dynamo's.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function createSelectionApi(options: SelectionApiOptions): SelectionApi {
  checkOptions(options);
  const { controlToken } = options;
  const isMounted = ({ isControl }: Operation) => !isControl || controlToken !== undefined;
  const mounted = OPERATIONS.filter(isMounted);
  const app = new Hono();
  const runs = new Runner(options);
  for (const operation of mounted)
    app.on(operation.method, routeOf(operation.path), (context) => runs.run(operation, context));
  let document: Response | undefined;
  app.get(DOCUMENT, () => {
    document ??= responseOf({ status: 200, value: openApiOf(mounted, API_VERSION) });
    return document.clone();
  });
  for (const { method, path } of OPERATIONS.filter((operation) => !isMounted(operation))) {
    app.on(method, routeOf(path), (context) => context.notFound());
  }
  for (const [path, methods] of methodsByPath(mounted)) app.all(routeOf(path), () => refuseMethod(methods));
  app.notFound(() => errorResponse(new HttpRequestError("KVROUTE_HTTP_NOT_FOUND", "route not found")));
  return { fetch: async (request, env, context) => app.fetch(request, env as object, context as never) };
}

/** Runs operations: checks what came, and writes what they answer. */
class Runner {
  readonly #service: SelectionService;
  readonly #controlToken: string | undefined;
  readonly #maxBodyBytes: number;
  readonly #onError: ((error: unknown) => void) | undefined;

  constructor({ service, controlToken, maxBodyBytes = BODY_BYTES_DEFAULT, onError }: SelectionApiOptions) {
    this.#service = service;
    this.#controlToken = controlToken;
    this.#maxBodyBytes = maxBodyBytes;
    this.#onError = onError;
  }

  /** Answers with what the operation says, or with what went wrong. */
  async run(operation: Operation, context: Context): Promise<Response> {
    try {
      return responseOf(await this.#answer(operation, context));
    } catch (error) {
      if (!(error instanceof KvrouteError) || (error.status ?? 500) === 500) this.#onError?.(error);
      return errorResponse(error, headersOf(error));
    }
  }

  async #answer(operation: Operation, context: Context): Promise<Answer> {
    const { raw } = context.req;
    if (operation.isControl && this.#controlToken !== undefined) authorize(raw, this.#controlToken);
    const body = await this.#bodyOf(operation, raw);
    const segment = Object.values(context.req.param())[0] ?? "";
    const query = new URL(raw.url).searchParams;
    return operation.run({ service: this.#service, body, segment, query });
  }

  async #bodyOf({ body: schema, isBodyOptional }: Operation, request: Request): Promise<unknown> {
    if (schema === undefined) return undefined;
    const body = await readJson(request, this.#maxBodyBytes);
    return checked(schema, body === undefined && isBodyOptional ? {} : body);
  }
}

const routeOf = (path: string) => path.replace(/\{(\w+)\}/, ":$1");

function methodsByPath(operations: readonly Operation[]): Map<string, string[]> {
  const methods = new Map([[DOCUMENT, ["GET"]]]);
  for (const { path, method } of operations) methods.set(path, [...(methods.get(path) ?? []), method]);
  return methods;
}

function refuseMethod(allowed: readonly string[]): Response {
  const error = new HttpRequestError("KVROUTE_HTTP_METHOD", "method not allowed");
  return errorResponse(error, { allow: allowed.join(", ") });
}

function headersOf(error: unknown): Record<string, string> {
  const isUnauthorized = error instanceof KvrouteError && error.code === "KVROUTE_HTTP_UNAUTHORIZED";
  return isUnauthorized ? { "www-authenticate": "Bearer" } : {};
}

function checkOptions({ service, controlToken, maxBodyBytes = BODY_BYTES_DEFAULT }: SelectionApiOptions): void {
  if (!(service instanceof SelectionService)) throw new OptionError("Expected service to be a SelectionService.");
  checkToken(controlToken);
  if (Number.isInteger(maxBodyBytes) && maxBodyBytes >= 1 && maxBodyBytes <= BODY_BYTES_MAX) return;
  throw new OptionError(`Expected maxBodyBytes to be a whole number from 1 to ${BODY_BYTES_MAX}, got ${maxBodyBytes}.`);
}
