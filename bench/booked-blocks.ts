import { Lives } from "./booked-blocks/lives.js";
import { MapBooked } from "./booked-blocks/map-booked.js";
import { main, type TimedSuite } from "./harness.js";

function contenders(asksOnly: boolean): TimedSuite["contenders"] {
  return {
    // No part of the package's entry: it stands behind the selection service.
    "kvroute BookedBlocks": async () => {
      const { BookedBlocks } = await import("../src/core/booked-blocks.js");
      return new Lives(new BookedBlocks(), { asksOnly });
    },
    "Map<bigint, Map>": async () => new Lives(new MapBooked(), { asksOnly }),
  };
}

await main(import.meta.url, [
  {
    kind: "time",
    title: "Booked blocks: the life of a booking of 512 hashes, 64 workers",
    operation: "potential, book, settle and unbook of 512 hashes each, with 512 requests under way",
    rounds: 15,
    contenders: contenders(false),
  },
  {
    kind: "time",
    title: "Booked blocks: potential of 512 hashes, 64 workers",
    operation:
      "count how many of 512 hashes are active on each worker, the first 32 on all, with 512 requests under way",
    rounds: 15,
    contenders: contenders(true),
  },
]);
