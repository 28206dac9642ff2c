import { BucketIndex } from "./baselines/bucket-index.js";
import { MapPool } from "./baselines/map-pool.js";
import { OpenIndex } from "./baselines/open-index.js";
import { TypedArrayPool } from "./baselines/typed-array-pool.js";
import { main, type Runner, type SizeSuite, type TimedSuite } from "./harness.js";
import type { Pool } from "./pool/contract.js";
import { LifeCycle } from "./pool/life-cycle.js";
import { measureHeap, readMemory } from "./pool/memory.js";
import { Touch } from "./pool/touch.js";

// The built package, as a user imports it, and only in the processes that measure it.
const importPool = async () => (await import("kvroute")).BlockPool;

/** The same benchmark for each pool. */
function contenders(start: <R>(make: (options: { capacity: number }) => Pool<R>) => Runner): TimedSuite["contenders"] {
  return {
    "kvroute BlockPool": async () => {
      const BlockPool = await importPool();
      return start((options) => new BlockPool(options));
    },
    "typed arrays, open addressing": async () => start((options) => new TypedArrayPool(options, OpenIndex)),
    "typed arrays, chained buckets": async () => start((options) => new TypedArrayPool(options, BucketIndex)),
    "Map<bigint, …>": async () => start((options) => new MapPool(options)),
  };
}

const lifeCycle: TimedSuite = {
  kind: "time",
  title: "Block pool: life cycle of a request, 65,536 blocks, full",
  operation: "match 64 hashes, reserve 32 + 32 (evicting 32), activate 32, cache 32, release 64",
  rounds: 31,
  contenders: contenders((make) => new LifeCycle(make)),
};

const touchBatches: TimedSuite = {
  kind: "time",
  title: "Block pool: touch 64 of 65,536 resident blocks",
  operation: "reserve 64 resident hashes, cancel",
  rounds: 31,
  contenders: contenders((make) => new Touch(make, 64, 2_048)),
};

const touchSingly: TimedSuite = {
  kind: "time",
  title: "Block pool: touch one of 65,536 resident blocks",
  operation: "reserve([hash], 0), cancel",
  rounds: 31,
  contenders: contenders((make) => new Touch(make, 1, 32_768)),
};

const CAPACITIES = [1_000, 65_536, 1_000_000];
const capacityOf = (column: number) => CAPACITIES[column] as number;

const memory: SizeSuite = {
  kind: "size",
  title: "Block pool: memory of a full pool",
  columns: CAPACITIES.map((capacity) => `${capacity.toLocaleString("en")} blocks`),
  contenders: {
    "kvroute BlockPool": async (column) => {
      const BlockPool = await importPool();
      const capacity = capacityOf(column);
      return readMemory(new BlockPool({ capacity }), capacity);
    },
    "typed arrays, open addressing": async (column) =>
      measureHeap((options) => new TypedArrayPool(options, OpenIndex), capacityOf(column)),
    "typed arrays, chained buckets": async (column) =>
      measureHeap((options) => new TypedArrayPool(options, BucketIndex), capacityOf(column)),
    "Map<bigint, …>": async (column) => measureHeap((options) => new MapPool(options), capacityOf(column)),
  },
};

await main(import.meta.url, [lifeCycle, touchBatches, touchSingly, memory]);
