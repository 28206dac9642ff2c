// Node with --expose-gc: pools that are made, used and dropped, and what of them stays.
import { setImmediate as turn } from "node:timers/promises";
import { BlockPool } from "kvroute";

const ROUNDS = 20;
const POOLS = 1_000;

/** Makes pools, uses each, and keeps none. */
function drop(isDisposed) {
  for (let made = 0; made < POOLS; made++) {
    const pool = new BlockPool({ capacity: 1_000 });
    const outcome = pool.reserve([], 100);
    pool.allocateAllPrivate(outcome.reservation);
    if (isDisposed && made % 2 === 0) pool.dispose();
  }
}

/** Collects what can be collected, and counts the bytes of the process. */
async function resident() {
  for (let round = 0; round < 4; round++) {
    globalThis.gc();
    await turn();
  }
  return process.memoryUsage.rss();
}

drop(false);
drop(true);
const before = await resident();
for (let round = 0; round < ROUNDS; round++) {
  drop(round % 2 === 0);
  await resident();
}
console.log(JSON.stringify({ pools: ROUNDS * POOLS, before, after: await resident() }));
