import { main, type TimedSuite } from "./harness.js";
import { hubLine, type Line, memoryLine } from "./transport/line.js";
import { Rally, Stream } from "./transport/rally.js";
import { bareLine, threadLine } from "./transport/threads.js";

const MIB = 2 ** 20;

function suite(title: string, operation: string, runner: (line: Line) => Rally): TimedSuite {
  const contender = (open: () => Promise<Line>) => async () => runner(await open());
  return {
    kind: "time",
    title,
    operation,
    rounds: 21,
    contenders: {
      "bare MessagePort, worker thread": contender(bareLine),
      "kvroute MessagePort, worker thread": contender(threadLine),
      "kvroute hub, one thread": contender(hubLine),
      "kvroute MemoryNetwork, one thread": contender(memoryLine),
    },
  };
}

const pingPong = suite(
  "Transports: there and back",
  "16 bytes to the other side and back, one after the other",
  (line) => new Rally(line, 2_000, 16),
);
const stream = suite(
  "Transports: a stream of small envelopes",
  "16 bytes one way, so millions of envelopes a second are 1 by the us",
  (line) => new Stream(line, 20_000, 16),
);
const bulk = suite(
  "Transports: a stream of large envelopes",
  "1 MiB one way, made anew for each, so GB/s are 1,049 by the us",
  (line) => new Stream(line, 200, MIB),
);

await main(import.meta.url, [pingPong, stream, bulk]);
