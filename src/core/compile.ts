import { moduleAsync } from "#core";
import { CoreUnavailableError } from "../errors.js";

/** Compiles the core without holding the thread up, for hosts that refuse to do it synchronously; pass it to constructors. */
export async function compileCore(): Promise<WebAssembly.Module> {
  try {
    return await moduleAsync();
  } catch (cause) {
    throw new CoreUnavailableError(cause);
  }
}
