/** A request that is answered with an error. Nobody outside sees it as such. */
export class HttpError extends Error {
  readonly status: number;
  readonly type: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, type: string, message: string, retryAfterSeconds?: number | undefined) {
    super(message);
    this.status = status;
    this.type = type;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The error of a request that cannot be meant. */
export function badRequest(message: string): HttpError {
  return new HttpError(400, "BadRequestError", message);
}

/** Answers with an error in the form of the path's protocol. */
export function errorResponse({ status, type, message, retryAfterSeconds }: HttpError, isAnthropic: boolean): Response {
  const headers = new Headers();
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  const body = isAnthropic
    ? { type: "error", error: { type: ANTHROPIC_TYPES[status] ?? "api_error", message } }
    : { error: { message, type, param: null, code: status } };
  return Response.json(body, { status, headers });
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};
