import { xxh3 } from "../core/token-hash.js";
import type { HeaderReader } from "./header-list.js";
import { CREDENTIALS, tenantOf } from "./session.js";

/** Credentials whose tenants are remembered. */
export const TENANTS_MAX = 1_024;

/**
 * Names the tenants of requests, and remembers those of the last ones: SHA-256 is a job for another thread, which takes
 * longer than everything else that a router does for a short request. Credentials are remembered by a hash alone.
 */
export class Tenants {
  readonly #known = new Map<bigint, string>();
  /** Whose request was the last: it need not be moved, and clients often have a router to themselves. */
  #last: bigint | undefined;

  async of(headers: HeaderReader): Promise<string> {
    if (CREDENTIALS.every((name) => headers.get(name) === null)) return "";
    const key = xxh3(new TextEncoder().encode(JSON.stringify(CREDENTIALS.map((name) => headers.get(name)))));
    const tenant = this.#known.get(key) ?? (await tenantOf(headers));
    if (key === this.#last) return tenant;
    this.#last = key;
    this.#known.delete(key);
    this.#known.set(key, tenant); // last in the order, which is that of use
    if (this.#known.size > TENANTS_MAX) this.#known.delete(this.#known.keys().next().value as bigint);
    return tenant;
  }
}
