// Node with --expose-gc: pools that are made, used and dropped, and what of them stays. The argument is how many thousands
// are made before what is there is counted for the first time.
import { setImmediate as turn } from "node:timers/promises";
import { BlockPool } from "kvroute";

const ROUNDS = 20;
const POOLS = 1_000;
const warmRounds = Number(process.argv[2]);

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

/** Drops so many thousands. Returns the bytes of the process then. */
async function after(rounds) {
  for (let round = 0; round < rounds; round++) {
    drop(round % 2 === 0);
    await resident();
  }
  return resident();
}

console.log(JSON.stringify({ pools: ROUNDS * POOLS, before: await after(warmRounds), after: await after(ROUNDS) }));
