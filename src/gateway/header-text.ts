import { GatewayError } from "../errors.js";

// What `fetch` refuses, and what would end a connection or begin another request on it. Clients of HTTP refuse it each in
// words of its own, or not at all; here it is the same for all, and known to be the caller's doing.

/** What the name of a header can be, and a method. */
export const WORD = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Checks a header of a request.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_REQUEST` if it could not be written
 */
export function checkHeader(name: string, value: string): void {
  if (!WORD.test(name)) throw unsendable("names that headers can have, got another one");
  if (!VALUE.test(value)) throw unsendable(`${name} to have a value that headers can have, got another one`); // it may be secret
}

export function unsendable(expected: string): GatewayError {
  return new GatewayError("KVROUTE_GATEWAY_REQUEST", `Expected ${expected}.`);
}
