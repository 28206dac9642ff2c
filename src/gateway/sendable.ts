import { unsendable, WORD } from "./header-text.js";

const OF_PROXIES = /^(connect|trace|track)$/i;
const WITHOUT_BODY = /^(get|head)$/i;
const URL_TEXT = /^[\x21-\x7e]*$/;

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
