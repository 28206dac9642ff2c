import { type Context, Hono } from "hono";
import { HttpRequestError, KvrouteError } from "../errors.js";
import { countOption } from "../selection/policies/numbers.js";
import type { SelectionService } from "../selection/service.js";
import { type Answer, errorResponse, responseOf } from "./answer.js";
import { readJson } from "./body.js";
import { checked } from "./check.js";
import { printJson } from "./json.js";
import { type ApiDescription, openApiOf } from "./openapi.js";
import type { Operation } from "./operation.js";
import type { WorkerRegistry } from "./registry.js";
import { authorize, checkToken } from "./token.js";

/** What operations are served with, whichever they are. */
export interface ServingOptions {
  /** Opens what it guards to those who send it as a bearer token. Without it these paths are not there. */
  readonly controlToken?: string | undefined;
  /** Bytes of a request's body. Default 8 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Is told of what is answered with a 500. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** What an application is made of. */
export interface AppParts extends ServingOptions {
  readonly operations: readonly Operation[];
  readonly service: SelectionService;
  readonly workers: WorkerRegistry;
  readonly about: ApiDescription;
}

export const BODY_BYTES_DEFAULT = 8 * 2 ** 20;
export const BODY_BYTES_MAX = 2 ** 30;
const DOCUMENT = "/openapi.json";

/** @throws {OptionError} `KVROUTE_OPTION` if one could not be served with */
export function checkServing({ controlToken, maxBodyBytes = BODY_BYTES_DEFAULT }: ServingOptions): void {
  checkToken(controlToken);
  countOption("maxBodyBytes", maxBodyBytes, 1, BODY_BYTES_MAX);
}

/** Makes an application of operations, and of a document that describes them. What takes a token is not there without one. */
export function appOf(parts: AppParts): Hono {
  const { operations, controlToken, about } = parts;
  const isMounted = ({ isControl }: Operation) => !isControl || controlToken !== undefined;
  const mounted = operations.filter(isMounted);
  const app = new Hono();
  const runs = new Runner(parts);
  for (const operation of mounted)
    app.on(operation.method, routeOf(operation.path), (context) => runs.run(operation, context));
  let document: string | undefined;
  app.get(DOCUMENT, () => {
    document ??= printJson(openApiOf(mounted, about));
    return new Response(document, { headers: { "content-type": "application/json" } });
  });
  for (const { method, path } of operations.filter((operation) => !isMounted(operation))) {
    app.on(method, routeOf(path), (context) => context.notFound());
  }
  for (const [path, methods] of methodsByPath(mounted)) {
    const isOpen = path === DOCUMENT || mounted.some((one) => one.path === path && !one.isControl);
    app.all(routeOf(path), (context) => runs.refuse(methods, isOpen ? undefined : context.req.raw));
  }
  app.notFound(() => errorResponse(new HttpRequestError("KVROUTE_HTTP_NOT_FOUND", "route not found")));
  return app;
}

/** Answers with a 405 that says what is allowed. */
export function refuseMethod(allowed: readonly string[]): Response {
  const error = new HttpRequestError("KVROUTE_HTTP_METHOD", "method not allowed");
  return errorResponse(error, { allow: allowed.join(", ") });
}

/** Runs operations: checks what came, and writes what they answer. */
class Runner {
  readonly #parts: AppParts;

  constructor(parts: AppParts) {
    this.#parts = parts;
  }

  /** Answers with what the operation says, or with what went wrong. */
  async run(operation: Operation, context: Context): Promise<Response> {
    try {
      return responseOf(await this.#answer(operation, context));
    } catch (error) {
      if (!(error instanceof KvrouteError) || (error.status ?? 500) === 500) this.#parts.onError?.(error);
      return errorResponse(error, headersOf(error));
    }
  }

  /** Answers a request of a method that is not there. Where all that is there takes the token, who lacks it is told that first. */
  refuse(allowed: readonly string[], guarded: Request | undefined): Response {
    const { controlToken } = this.#parts;
    try {
      if (guarded !== undefined && controlToken !== undefined) authorize(guarded, controlToken);
    } catch (error) {
      return errorResponse(error, headersOf(error));
    }
    return refuseMethod(allowed);
  }

  async #answer(operation: Operation, context: Context): Promise<Answer> {
    const { service, workers, controlToken } = this.#parts;
    const { raw } = context.req;
    if (operation.isControl && controlToken !== undefined) authorize(raw, controlToken);
    const body = await this.#bodyOf(operation, raw);
    const segment = Object.values(context.req.param())[0] ?? "";
    const query = new URL(raw.url).searchParams;
    return operation.run({ service, workers, body, segment, query });
  }

  async #bodyOf({ body: schema, isBodyOptional }: Operation, request: Request): Promise<unknown> {
    if (schema === undefined) return undefined;
    const body = await readJson(request, this.#parts.maxBodyBytes ?? BODY_BYTES_DEFAULT);
    return checked(schema, body === undefined && isBodyOptional ? {} : body);
  }
}

const routeOf = (path: string) => path.replace(/\{(\w+)\}/, ":$1");

function methodsByPath(operations: readonly Operation[]): Map<string, string[]> {
  const methods = new Map([[DOCUMENT, ["GET"]]]);
  for (const { path, method } of operations) methods.set(path, [...(methods.get(path) ?? []), method]);
  return methods;
}

function headersOf(error: unknown): Record<string, string> {
  const isUnauthorized = error instanceof KvrouteError && error.code === "KVROUTE_HTTP_UNAUTHORIZED";
  return isUnauthorized ? { "www-authenticate": "Bearer" } : {};
}
