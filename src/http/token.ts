import { HttpRequestError, OptionError } from "../errors.js";
import type { HeaderReader } from "../gateway/header-list.js";
import { CREDENTIALS } from "../gateway/session.js";

/** Checks a control token where there is one: an empty one would let everybody in. */
export function checkToken(token: string | undefined): void {
  if (token === undefined || (typeof token === "string" && /^[\x21-\x7e]+$/.test(token))) return;
  throw new OptionError("Expected controlToken to be a text of printable ASCII without spaces, got another value.");
}

/** @throws {HttpRequestError} `KVROUTE_HTTP_UNAUTHORIZED` unless the request has the token */
export function authorize(request: Request, token: string): void {
  const given = credentialIn("authorization", request.headers.get("authorization") ?? "");
  if (given !== undefined && isSameText(given, token)) return;
  const got = given === undefined ? "none" : "another one";
  throw new HttpRequestError("KVROUTE_HTTP_UNAUTHORIZED", `Expected the control token as a bearer token, got ${got}.`);
}

/** Gives the credential in a header of credentials, `undefined` where there is none of the kind that this server has. */
export function credentialIn(name: string, value: string): string | undefined {
  return name === "authorization" ? /^Bearer +(\S+) *$/i.exec(value.trim())?.[1] : value.trim();
}

/** Names the headers in which a request has the control token, among others or not: it is not for engines. */
export function headersWith(token: string, headers: HeaderReader): string[] {
  const isToken = (name: string) => (value: string) => isSameText(credentialIn(name, value) ?? "", token);
  return CREDENTIALS.filter((name) => {
    const value = headers.get(name);
    return value !== null && [value, ...value.split(",")].some(isToken(name));
  });
}

/** Takes the control token out of a request, if it is there. */
export function withoutToken(request: Request, token: string | undefined): Request {
  const names = token === undefined ? [] : headersWith(token, request.headers);
  if (names.length === 0) return request;
  const headers = new Headers(request.headers);
  for (const name of names) headers.delete(name);
  const { url, method, body, signal } = request;
  return new Request(url, { method, headers, body, signal, duplex: "half" } as RequestInit); // which the types do not know
}

/** Compares in a time that depends on the length of what was given alone. */
function isSameText(given: string, wanted: string): boolean {
  let difference = given.length ^ wanted.length;
  for (let at = 0; at < given.length; at++) difference |= given.charCodeAt(at) ^ wanted.charCodeAt(at % wanted.length);
  return difference === 0;
}
