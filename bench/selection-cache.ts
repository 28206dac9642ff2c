import { SelectionCache } from "../src/selection/cache.js";
import { main, type TimedSuite } from "./harness.js";
import { Claim } from "./selection-cache/claim.js";
import { Late } from "./selection-cache/late.js";
import { SortedArrayCache } from "./selection-cache/sorted-array-cache.js";

function claim(lag: 0 | 4_096): TimedSuite["contenders"] {
  return {
    "kvroute, handed over": async () => {
      return new Claim((options) => new SelectionCache(options), { lag, isCopied: false });
    },
    "kvroute, copied": async () => new Claim((options) => new SelectionCache(options), { lag, isCopied: true }),
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
    "kvroute SelectionCache": async () => new Late((options) => new SelectionCache(options)),
    "Map and sorted array": async () => new Late((options) => new SortedArrayCache(options)),
  },
};

await main(import.meta.url, [claimAtOnce, claimLater, lateAnchors]);
