import type { RoutingPartition } from "../../src/selection/cache.js";
import { type CacheOptions, type CacheUnderTest, pending } from "./selection-cache-subject.js";

/** A rule of the cache as a sentence, and an example that fails where the rule is broken. */
export interface Law {
  readonly title: string;
  readonly holds: (create: (options: CacheOptions) => CacheUnderTest) => void;
}

/** Laws by what they are about. */
export type Laws = Readonly<Record<string, readonly Law[]>>;

export const law = (title: string, holds: Law["holds"]): Law => ({ title, holds });

export const home: RoutingPartition = { modelName: "m", routingGroup: "g" };

/** Bytes of an entry without hashes whose id has one character. */
export const BARE = 3;

/** Inserts at a time, with an anchor of its own where one is given. Returns the generation. */
export function put(cache: CacheUnderTest, id: string, nowMs: number, insertedAtMs?: number, hashes = 0): number {
  return cache.insert(id, pending(home, hashes), nowMs, insertedAtMs);
}

/** Which of the ids, each of one character, are alive. */
export function alive(cache: CacheUnderTest, ids: string, nowMs: number): string {
  return [...ids].filter((id) => cache.peek(home, id, nowMs) !== null).join("");
}
