import type { PoolUnderTest } from "../support/pool-under-test.js";
import type { Side } from "../support/side.js";
import type { Call, World } from "./world.js";

/** More words than a page of memory holds, so that no batch of them fits into what was there before. */
const MANY = 8_500;

export const GROWING_CAPACITY = 100_000;

const resident = BigUint64Array.from({ length: MANY }, (_, i) => 1n + BigInt(i) * 0x9e37_79b9_7f4a_7c15n);
const news = BigUint64Array.from({ length: MANY }, (_, i) => 2n + BigInt(i) * 0x9e37_79b9_7f4a_7c15n);

const privates = Array.from({ length: MANY }, (_, i) => MANY + i);
const OPEN = 2;

/**
 * Brings both pools to a state in which every verb of a batch has much to do, by calls of single blocks alone, so that
 * the scratch page is still as it was: inactive copies, private copies, and an open reservation, many of each.
 */
export function prepare<P extends PoolUnderTest>(world: World<P>): void {
  for (const side of [world.model, world.real]) {
    side.reserve([], MANY);
    for (const hash of resident) side.release(side.allocateCached(0, hash).copy);
    side.reserve([], MANY);
    for (let copy = 0; copy < MANY; copy++) side.allocatePrivate(1);
    side.reserve([], MANY);
  }
  world.know(resident.slice(0, 8));
  world.know(news.slice(0, 8));
  world.compareAll();
}

/** Blocks that are free in the prepared state. */
const FREE = GROWING_CAPACITY - 3 * MANY;

function call(text: string, act: (side: Side) => unknown): Call {
  return { text, act };
}

/** Every verb that may grow memory, with enough to do that it must. */
export const growingVerbs: readonly Call[] = [
  call("matchPrefix of many hashes", (side) => side.match(resident)),
  call("reserve of a long prefix", (side) => side.reserve(resident, 0)),
  call("reserve of many fresh blocks", (side) => side.reserve([], FREE)),
  call("reserve with many evictions", (side) => side.reserve([], FREE + MANY)),
  call("reserve of a long prefix and many fresh blocks", (side) => side.reserve(resident, FREE)),
  call("reserveResidentPrefix of many hashes", (side) => side.reserveResident(resident, MANY)),
  call("allocateAllPrivate of many blocks", (side) => side.allocateAllPrivate(OPEN)),
  call("allocateAllCached of many hashes", (side) => side.allocateAllCached(OPEN, news)),
  call("cacheAll of many copies", (side) => side.cacheAll(privates, news)),
  call("releaseAll of many copies", (side) => side.releaseAll(privates)),
  call("releaseChain of many copies", (side) => side.releaseChain(privates)),
];

/** Every verb that never needs memory. */
export const settledVerbs: readonly Call[] = [
  call("prefixHit", (side) => side.hit(resident[0] ?? 0n)),
  call("matchPrefix of a few hashes", (side) => side.match(resident.slice(0, 8))),
  call("allocatePrivate", (side) => side.allocatePrivate(OPEN)),
  call("allocateCached", (side) => side.allocateCached(OPEN, news[0] ?? 0n)),
  call("cachePrivate", (side) => side.cache(privates[0] ?? 0, news[0] ?? 0n)),
  call("release", (side) => side.release(privates[1] ?? 0)),
  call("reserve of what is resident", (side) => side.reserve(resident.slice(0, 8), 0)),
  call("activatePrefix", (side) => side.activate(side.reservations.length - 1)),
  call("cancel", (side) => side.cancel(OPEN)),
];
