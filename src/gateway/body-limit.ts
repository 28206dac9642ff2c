import { GatewayError } from "../errors.js";

/** The error of a body that is too long. */
export function tooLarge(most: number): GatewayError {
  const message = `Expected a body of at most ${most} bytes (maxBodyBytes), got a longer one.`;
  return new GatewayError("KVROUTE_GATEWAY_BODY_TOO_LARGE", message);
}
