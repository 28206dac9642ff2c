import { createHash, createHmac, randomBytes } from "node:crypto";
import { GatewayError, OptionError } from "../../errors.js";
import type { HeaderList } from "../../gateway/header-list.js";
import { CREDENTIALS } from "../../gateway/session.js";
import { credentialIn } from "../../http/token.js";

/** Keys that a server may have. */
export const API_KEYS_MAX = 10_000;

/** The keys of a server: who has one may ask, and is a tenant. */
export class ApiKeys {
  // Keys are looked up by a digest that nobody can foresee: how long that takes tells nothing of how close a guess is.
  readonly #secret = randomBytes(32);
  /** The names of tenants by the digests of their keys. */
  readonly #tenants = new Map<string, string>();

  /** @throws {OptionError} `KVROUTE_OPTION` if one could not be a key: an empty one would let everybody in */
  constructor(keys: readonly string[]) {
    if (!Array.isArray(keys) || keys.length === 0 || keys.length > API_KEYS_MAX) {
      throw new OptionError(`Expected apiKeys to be a list of 1 to ${API_KEYS_MAX} keys, got another value.`);
    }
    for (const [index, key] of keys.entries()) {
      if (typeof key !== "string" || !/^[\x21-\x7e]{1,1024}$/.test(key)) {
        const what = "a text of 1 to 1024 printable characters of ASCII without spaces";
        throw new OptionError(`Expected apiKeys[${index}] to be ${what}, got another value.`);
      }
      this.#tenants.set(this.#digestOf(key), createHash("sha256").update(key).digest("hex"));
    }
  }

  /**
   * Finds the tenant whose key a request has, and takes every key of this server out of its headers: they are not for workers.
   *
   * @throws {GatewayError} `KVROUTE_GATEWAY_UNAUTHORIZED` if it has none
   */
  admit(headers: HeaderList): string {
    let tenant: string | undefined;
    for (const name of CREDENTIALS) {
      const value = headers.get(name);
      const found = value === null ? undefined : this.#tenants.get(this.#digestOf(credentialIn(name, value) ?? ""));
      if (found === undefined) continue;
      tenant ??= found;
      headers.delete(name);
    }
    if (tenant !== undefined) return tenant;
    const got = CREDENTIALS.some((name) => headers.has(name)) ? "another one" : "none";
    throw new GatewayError(
      "KVROUTE_GATEWAY_UNAUTHORIZED",
      `Expected an API key of this server as a bearer token or in x-api-key, got ${got}.`,
    );
  }

  #digestOf(key: string): string {
    return createHmac("sha256", this.#secret).update(key).digest("base64");
  }
}
