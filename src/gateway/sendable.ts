import { GatewayError } from "../errors.js";

// What `fetch` refuses, and what would end a connection or begin another request on it. Clients of HTTP refuse it each in
// words of its own, or not at all; here it is the same for all, and known to be the caller's doing.

const WORD = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
const OF_PROXIES = /^(connect|trace|track)$/i;
const WITHOUT_BODY = /^(get|head)$/i;
const URL_TEXT = /^[\x21-\x7e]*$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Checks with what a request begins.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_REQUEST` if nobody could send it on
 */
export function checkBegin(method: string, url: string, bytes: Uint8Array | undefined): void {
  if (!WORD.test(method) || OF_PROXIES.test(method)) {
    throw unsendable(`a method that can be sent on, got ${JSON.stringify(method.slice(0, 32))}`);
  }
  if (WITHOUT_BODY.test(method) && bytes !== undefined && bytes.length > 0) {
    throw unsendable(`${method} to have no body, got one of ${bytes.length} bytes`);
  }
  if (!URL_TEXT.test(url)) throw unsendable("a path of printable ASCII, got another one");
}

/**
 * Checks a header of a request.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_REQUEST` if it could not be written
 */
export function checkHeader(name: string, value: string): void {
  if (!WORD.test(name)) throw unsendable("names that headers can have, got another one");
  if (!VALUE.test(value)) throw unsendable(`${name} to have a value that headers can have, got another one`); // it may be secret
}

function unsendable(expected: string): GatewayError {
  return new GatewayError("KVROUTE_GATEWAY_REQUEST", `Expected ${expected}.`);
}
