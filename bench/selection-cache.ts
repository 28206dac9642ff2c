import { main, type Runner, type TimedSuite } from "./harness.js";
import { Claim } from "./selection-cache/claim.js";
import type { MakeCache } from "./selection-cache/contract.js";
import { Late } from "./selection-cache/late.js";
import { SortedArrayCache } from "./selection-cache/sorted-array-cache.js";

/** Starts a contender on the built package, as a user imports it, and only in the process that measures it. */
async function onKvroute(start: (make: MakeCache) => Runner): Promise<Runner> {
  const { SelectionCache } = await import("kvroute");
  return start((options) => new SelectionCache(options));
}

function claim(lag: 0 | 4_096): TimedSuite["contenders"] {
  return {
    "kvroute, handed over": () => onKvroute((make) => new Claim(make, { lag, isCopied: false })),
    "kvroute, copied": () => onKvroute((make) => new Claim(make, { lag, isCopied: true })),
    "Map and sorted array": async () => {
      return new Claim((options) => new SortedArrayCache(options), { lag, isCopied: false });
    },
  };
}

const claimAtOnce: TimedSuite = {
  kind: "time",
  title: "Selection cache: select and claim, 4,096 resident",
  operation: "insert a selection of 512 hashes, peek, remove",
  rounds: 31,
  contenders: claim(0),
};

const claimLater: TimedSuite = {
  kind: "time",
  title: "Selection cache: select, and claim 4,096 selections later",
  operation: "insert a selection of 512 hashes; peek and remove the one inserted 4,096 inserts ago",
  rounds: 31,
  contenders: claim(4_096),
};

const lateAnchors: TimedSuite = {
  kind: "time",
  title: "Selection cache: anchors in random order, 65,536 resident, full",
  operation: "insert a selection with an anchor of its own (evicting the oldest)",
  rounds: 15,
  contenders: {
    "kvroute SelectionCache": () => onKvroute((make) => new Late(make)),
    "Map and sorted array": async () => new Late((options) => new SortedArrayCache(options)),
  },
};

await main(import.meta.url, [claimAtOnce, claimLater, lateAnchors]);
