import type { PoolUnderTest } from "../support/pool-under-test.js";
import type { Call, World } from "./world.js";

/** Blocks that a pool of the scenario models. */
export const SCENARIO_CAPACITY = 12_000;

/** Blocks of the requests, one after the other; each lets the scratch page and the slots grow once more. */
const REQUESTS = [300, 700, 1_500, 3_000, 6_000, 11_000];

/** What to do with a call that met a limit. Tells whether it was made after all; else the scenario goes on without it. */
export type Refused = (call: Call) => boolean;

/**
 * Plays ever larger requests, in which every verb that can grow memory comes to do so.
 *
 * Where a call meets a limit, what depends on it is left out; all that comes later still runs.
 */
export function play<P extends PoolUnderTest>(world: World<P>, onRefused: Refused): void {
  const scene = new Scene(world, onRefused);
  let prompt: bigint[] = [];
  for (const blocks of REQUESTS) {
    const news = hashes(BigInt(blocks), blocks);
    request(scene, prompt, news);
    scene.release();
    scene.use(scene.reserveResident(news, blocks), (r) => {
      scene.single({ text: "cancel", act: (side) => side.cancel(r) });
    });
    prompt = news.slice(0, SCENARIO_CAPACITY - 2 * blocks);
  }
  world.compareAll();
}

/** A request that finds what is left of a prompt, and computes new blocks: half arrive complete, half are private first. */
function request<P extends PoolUnderTest>(scene: Scene<P>, prompt: readonly bigint[], news: readonly bigint[]): void {
  const { world } = scene;
  const half = news.length / 2;
  scene.call({ text: `match(${news.length})`, act: (side) => side.match(news) });
  scene.use(scene.reserve(resident(world, prompt), news.length), (r) => {
    const before = world.real.ids.length;
    scene.single({ text: "activate", act: (side) => side.activate(r) });
    scene.single({ text: "allocatePrivate", act: (side) => side.allocatePrivate(r) });
    scene.single({ text: "cache", act: (side) => side.cache(before, news[0] ?? 0n) });
    scene.single({ text: "allocateCached", act: (side) => side.allocateCached(r, news[1] ?? 0n) });
    scene.call({ text: "allocateAllCached", act: (side) => side.allocateAllCached(r, news.slice(2, half)) });
    const from = world.real.ids.length;
    scene.call({ text: "allocateAllPrivate", act: (side) => side.allocateAllPrivate(r) });
    const made = [...world.real.ids.keys()].slice(from);
    const names = news.slice(half, half + made.length);
    scene.call({ text: "cacheAll", act: (side) => side.cacheAll(made.slice(0, names.length), names) });
    scene.single({ text: "cancel", act: (side) => side.cancel(r) });
  });
}

class Scene<P extends PoolUnderTest> {
  constructor(
    readonly world: World<P>,
    readonly onRefused: Refused,
  ) {}

  /** Makes a call that may meet a limit; if it does, everything must be as before. Returns whether it went through. */
  call(call: Call): boolean {
    const before = this.world.limited.length;
    this.world.step(call);
    return this.world.limited.length === before || this.onRefused(call);
  }

  /** Makes a call that can never fail for memory. */
  single(call: Call): void {
    this.world.step(call);
  }

  reserve(prefix: readonly bigint[], fresh: number): number | undefined {
    const hashes = BigUint64Array.from(prefix);
    return this.#reserve(prefix, { text: `reserve(${fresh})`, act: (side) => side.reserve(hashes, fresh) });
  }

  reserveResident(candidates: readonly bigint[], total: number): number | undefined {
    const hashes = BigUint64Array.from(candidates);
    const text = `reserveResident(${total})`;
    return this.#reserve(candidates, { text, act: (side) => side.reserveResident(hashes, total) });
  }

  /** Returns the number of the reservation, if it was granted. */
  #reserve(hashes: readonly bigint[], call: Call): number | undefined {
    this.world.know(hashes.slice(0, 32));
    const before = this.world.real.reservations.length;
    return this.call(call) && this.world.real.reservations.length > before ? before : undefined;
  }

  /** Goes on with a reservation, if it was granted. */
  use(reservation: number | undefined, then: (reservation: number) => void): void {
    if (reservation !== undefined) then(reservation);
  }

  /** Releases all that is held: in one batch, or copy by copy where there is no room for the batch. */
  release(): void {
    const copies = this.world.releasable();
    if (this.call({ text: "releaseChain", act: (side) => side.releaseChain(copies) })) return;
    for (const copy of copies) this.world.call({ text: `release(c${copy})`, act: (side) => side.release(copy) });
    this.world.compare();
  }
}

/** Hashes that start a run of their own. */
function hashes(run: bigint, count: number): bigint[] {
  return Array.from({ length: count }, (_, i) => BigInt.asUintN(64, (run << 40n) + BigInt(i) * 0x9e37_79b9_7f4a_7c15n));
}

function resident(world: World, of: readonly bigint[]): bigint[] {
  return of.filter((hash) => world.model.hit(hash) !== null);
}
