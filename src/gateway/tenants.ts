import type { HeaderReader } from "./header-list.js";
import { hashWholeText } from "./prompt/canonical-text.js";
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

  /** Names the tenant of a request: at once where it is remembered. */
  of(headers: HeaderReader): string | Promise<string> {
    const credentials = CREDENTIALS.map((name) => headers.get(name));
    if (credentials.every((credential) => credential === null)) return "";
    const key = hashWholeText(JSON.stringify(credentials));
    const known = this.#known.get(key);
    return known === undefined
      ? tenantOf(headers).then((tenant) => this.#remember(key, tenant))
      : this.#remember(key, known);
  }

  #remember(key: bigint, tenant: string): string {
    if (key === this.#last) return tenant;
    this.#last = key;
    this.#known.delete(key);
    this.#known.set(key, tenant); // last in the order, which is that of use
    if (this.#known.size > TENANTS_MAX) this.#known.delete(this.#known.keys().next().value as bigint);
    return tenant;
  }
}
