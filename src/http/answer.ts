import { HttpRequestError, KvrouteError } from "../errors.js";
import { printJson } from "./json.js";

/** What an operation answers. */
export interface Answer {
  readonly status: number;
  readonly value: unknown;
}

export const ok = (value: unknown): Answer => ({ status: 200, value });

/** What a call answers that has nothing to tell. */
export const done = (): Answer => ok({ status: "ok" });

/** Makes the response of an answer. */
export function responseOf({ status, value }: Answer, headers?: Readonly<Record<string, string>>): Response {
  return new Response(printJson(value), { status, headers: { ...headers, "content-type": "application/json" } });
}

/** Makes the response of whatever was thrown. Of what is no error of this package nothing is told. */
export function errorResponse(thrown: unknown, headers?: Readonly<Record<string, string>>): Response {
  const error =
    thrown instanceof KvrouteError
      ? thrown
      : new HttpRequestError("KVROUTE_HTTP_INTERNAL", "Expected the request to be served, but the service has failed.");
  return responseOf({ status: error.status ?? 500, value: { error: error.message, code: error.code } }, headers);
}
