import { HttpRequestError, OptionError } from "../errors.js";

/** Checks a control token where there is one: an empty one would let everybody in. */
export function checkToken(token: string | undefined): void {
  if (token === undefined || (typeof token === "string" && /^[\x21-\x7e]+$/.test(token))) return;
  throw new OptionError("Expected controlToken to be a text of printable ASCII without spaces, got another value.");
}

/** @throws {HttpRequestError} `KVROUTE_HTTP_UNAUTHORIZED` unless the request has the token */
export function authorize(request: Request, token: string): void {
  const given = /^Bearer +(\S+) *$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  if (given !== undefined && isSameText(given, token)) return;
  const got = given === undefined ? "none" : "another one";
  throw new HttpRequestError("KVROUTE_HTTP_UNAUTHORIZED", `Expected the control token as a bearer token, got ${got}.`);
}

/** Compares in a time that depends on the length of what was given alone. */
function isSameText(given: string, wanted: string): boolean {
  let difference = given.length ^ wanted.length;
  for (let at = 0; at < given.length; at++) difference |= given.charCodeAt(at) ^ wanted.charCodeAt(at % wanted.length);
  return difference === 0;
}
