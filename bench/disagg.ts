import { type Answerer, generator, inMemory, overThreads } from "./disagg/crew.js";
import { type Echo, openEcho } from "./disagg/echo.js";
import { describeMachine } from "./machine.js";
import { median, quantile } from "./stats.js";
import { table } from "./table.js";

// The rounds go round the contenders, so that a drift of the machine's speed meets all of them alike. All of them live in
// this process, with threads of their own: what is measured are promises and messages, not the state of a heap.

const ROUNDS = Number(process.env["KVROUTE_BENCH_ROUNDS"] ?? 15);

/** What is asked for: `requests` at once, `tokens` each. */
interface Load {
  readonly title: string;
  readonly requests: number;
  readonly tokens: number;
}

const LOADS: readonly Load[] = [
  { title: "512 requests at once, 1 token each", requests: 512, tokens: 1 },
  { title: "64 requests at once, 256 tokens each", requests: 64, tokens: 256 },
  { title: "1 request of 4,096 tokens", requests: 1, tokens: 4_096 },
];

const CONTENDERS: Readonly<Record<string, () => Promise<Answerer>>> = {
  "kvroute, in memory": inMemory,
  "kvroute, worker threads": overThreads,
  "an async generator, no router": generator,
};

/** Times a piece of work, in microseconds. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) * 1_000;
}

async function measure(load: Load, answerers: readonly Answerer[]): Promise<number[][]> {
  const times: number[][] = answerers.map(() => []);
  const wanted = BigInt(load.requests) * ((BigInt(load.tokens) * BigInt(load.tokens - 1)) / 2n);
  for (let round = -3; round < ROUNDS; round++) {
    for (let turn = 0; turn < answerers.length; turn++) {
      const at = (turn + Math.abs(round)) % answerers.length;
      let sum = 0n;
      const us = await timed(async () => {
        sum = await (answerers[at] as Answerer).answer(load.requests, load.tokens);
      });
      if (sum !== wanted) throw new Error(`Expected tokens with the sum ${wanted}, got ${sum}.`);
      if (round >= 0) times[at]?.push(us);
    }
  }
  return times;
}

function rows(load: Load, times: readonly (readonly number[])[]): string[][] {
  const { requests, tokens } = load;
  const rate = (count: number, us: number) => Math.round((count * 1e6) / us).toLocaleString("en-US");
  return Object.keys(CONTENDERS).map((name, at) => {
    const samples = times[at] ?? [];
    const us = median(samples);
    const perToken = (value: number) => (value / (requests * tokens)).toFixed(2);
    const spread = `${perToken(quantile(samples, 0.1))} to ${perToken(quantile(samples, 0.9))}`;
    return [name, rate(requests, us), rate(requests * tokens, us), perToken(us), spread];
  });
}

async function measureEcho(echo: Echo): Promise<string[][]> {
  const messages = 4_096;
  const ways = { "there and back": () => echo.pingPong(messages), "one way, streamed": () => echo.stream(messages) };
  const found: string[][] = [];
  for (const [title, work] of Object.entries(ways)) {
    const samples: number[] = [];
    for (let round = -3; round < ROUNDS; round++) {
      const us = await timed(work);
      if (round >= 0) samples.push(us / messages);
    }
    const spread = `${quantile(samples, 0.1).toFixed(2)} to ${quantile(samples, 0.9).toFixed(2)}`;
    found.push([title, median(samples).toFixed(2), spread]);
  }
  return found;
}

const machine = describeMachine();
console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.os}, Node ${machine.node}, kvroute ${machine.kvroute}`);
console.log(`load ${machine.load.toFixed(1)}, ${ROUNDS} rounds, median and 10th to 90th percentile\n`);

const answerers = await Promise.all(Object.values(CONTENDERS).map((make) => make()));
for (const load of LOADS) {
  const head = ["", "requests/s", "tokens/s", "us a token", "spread"];
  console.log(`### ${load.title}\n\n${table([head, ...rows(load, await measure(load, answerers))])}\n`);
}
await Promise.all(answerers.map((answerer) => answerer.close()));

const echo = openEcho();
console.log(`### A bare MessagePort, 16 bytes a message\n`);
console.log(table([["", "us a message", "spread"], ...(await measureEcho(echo))]));
await echo.close();
