import { GatewayError } from "../errors.js";

type DeskModule = typeof import("./desk.js");

/** Where the desk comes from; tests put something else in its place. */
export const source = { import: (): Promise<DeskModule> => import("./desk.js") };

let loaded: DeskModule | undefined;

/** Gives what answers requests, `undefined` where it has not been loaded. */
export function loadedDesk(): DeskModule | undefined {
  return loaded;
}

/**
 * Loads what answers requests. Whoever wants it asks the runtime, which loads it once: in workerd, a promise of one request
 * must not be waited for by another.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_NOT_LOADED` if it does not load; who asks again tries again
 */
export async function loadDesk(): Promise<DeskModule> {
  try {
    loaded ??= await source.import();
    return loaded;
  } catch (cause) {
    const message = `Expected to load the part of kvroute that answers requests, but got ${String(cause)}.`;
    throw new GatewayError("KVROUTE_GATEWAY_NOT_LOADED", message, { cause });
  }
}
