// Node: 1,000 pools that live at once, each with blocks of its own.
import { BlockPool } from "kvroute";

const POOLS = 1_000;
const BLOCKS = 32;

const promptOf = (at) => BigUint64Array.from({ length: BLOCKS }, (_, block) => BigInt(at * BLOCKS + block));
const pools = Array.from({ length: POOLS }, () => new BlockPool({ capacity: BLOCKS }));
for (const [at, pool] of pools.entries()) {
  const { reservation } = pool.reserve([], BLOCKS);
  const { ids } = pool.allocateAllCached(reservation, promptOf(at));
  pool.releaseChain(ids);
}
const right = pools.filter((pool, at) => pool.matchPrefix(promptOf(at)).resident === BLOCKS);
const wrong = pools.filter((pool, at) => pool.matchPrefix(promptOf((at + 1) % POOLS)).resident !== 0);
console.log(JSON.stringify({ right: right.length, wrong: wrong.length }));
