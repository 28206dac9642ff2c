import { main, type Runner, type TimedSuite } from "./harness.js";
import { Churn } from "./prefix-index/churn.js";
import type { MakeIndex } from "./prefix-index/contract.js";
import { MapIndex } from "./prefix-index/map-index.js";
import { Overlaps } from "./prefix-index/overlaps.js";
import { TypedArrayIndex } from "./prefix-index/typed-array-index.js";

// The built package, as a user imports it, and only in the processes that measure it.
const importIndex = async () => (await import("kvroute")).PrefixIndex;

const ENTRIES = 1_000_000;

function contenders(start: (make: MakeIndex) => Runner, { bounded = false } = {}): TimedSuite["contenders"] {
  const all: TimedSuite["contenders"] = {
    "kvroute PrefixIndex": async () => {
      const PrefixIndex = await importIndex();
      return start((options) => new PrefixIndex(options));
    },
    "typed arrays": async () => start((options) => new TypedArrayIndex(options)),
  };
  return bounded ? all : { ...all, "Map<bigint, Set>": async () => start(() => new MapIndex()) };
}

function overlaps(length: number, workers: number, rounds: number): TimedSuite {
  return {
    kind: "time",
    title: `Prefix index: overlap of ${length} hashes, 1 M entries, ${workers.toLocaleString("en")} workers`,
    operation: `ask who holds how much of a known chain, whose first 32 blocks all workers hold and the others two`,
    rounds,
    contenders: contenders((make) => new Overlaps(make, { entries: ENTRIES, workers, length })),
  };
}

const replaced: TimedSuite = {
  kind: "time",
  title: "Prefix index: store and remove chains of 64 hashes, 262,144 entries",
  operation: "store a chain that is not there, remove another",
  rounds: 15,
  contenders: contenders((make) => new Churn(make, { evicting: false })),
};

const evicted: TimedSuite = {
  kind: "time",
  title: "Prefix index: store chains of 64 hashes in a full index, 262,144 entries",
  operation: "store a chain that is not there; 64 entries are evicted",
  rounds: 15,
  contenders: contenders((make) => new Churn(make, { evicting: true }), { bounded: true }),
};

await main(import.meta.url, [
  overlaps(64, 64, 15),
  overlaps(512, 64, 15),
  overlaps(64, 1_024, 9),
  overlaps(512, 1_024, 9),
  replaced,
  evicted,
]);
