// Node with --expose-gc: pools that are made, used and dropped, and what of them stays.
import { setImmediate as turn } from "node:timers/promises";
import { BlockPool } from "kvroute";

const ROUNDS = 20;
const POOLS = 1_000;
const WARM_ROUNDS = 2;

/** Makes pools, uses each, and keeps none. */
function drop(isDisposed) {
  for (let made = 0; made < POOLS; made++) {
    const pool = new BlockPool({ capacity: 1_000 });
    const outcome = pool.reserve([], 100);
    pool.allocateAllPrivate(outcome.reservation);
    if (isDisposed && made % 2 === 0) pool.dispose();
  }
}

/** Collects what can be collected, and counts the bytes of the process, and those that JavaScript holds. */
async function held() {
  for (let round = 0; round < 4; round++) {
    globalThis.gc();
    await turn();
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heapUsed };
}

/** Drops so many thousands. Returns what is held then. */
async function after(rounds) {
  for (let round = 0; round < rounds; round++) {
    drop(round % 2 === 0);
    await held();
  }
  return held();
}

console.log(JSON.stringify({ pools: ROUNDS * POOLS, before: await after(WARM_ROUNDS), after: await after(ROUNDS) }));
