// Requests per second of `serve`, the latency that it adds and the CPU time that it takes, beside a direct connection, a bare
// proxy of node:http and undici, and a bare one of Hono and fetch.
//
//     node build/bench/serve.js [--seconds 4] [--rounds 5] [--warm-up 10000] [words of a scene, such as 1 KB or stream]
//
// Engines, clients and every contender have a process each; the rounds go round the contenders, each time with another one
// first. Engines and clients share the machine with the contender: CPU time is what depends least on that.

import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { describeMachine } from "./machine.js";
import type { Load, Measured, Scene } from "./serve/load.js";
import type { Question } from "./serve/player.js";
import { PROXIES } from "./serve/proxies.js";
import { median, quantile } from "./stats.js";
import { table } from "./table.js";

const CONNECTIONS = 64;
const ENGINES = 4;
const DIRECT = "direct";
const SCENES: Readonly<Record<string, Scene>> = {
  "1 KB, plain": { bytes: 1_000, isStream: false },
  "1 KB, stream of 16 events": { bytes: 1_000, isStream: true },
  "4 KB, plain": { bytes: 4_000, isStream: false },
  "100 KB, plain": { bytes: 100_000, isStream: false },
  "100 KB, stream of 16 events": { bytes: 100_000, isStream: true },
};

interface Player {
  ask<T>(question: Question): Promise<T>;
  close(): void;
}

interface Contender {
  readonly name: string;
  readonly url: string;
  readonly player: Player;
}

interface Sample extends Measured {
  readonly cpuUs: number;
}

function openPlayer(name: string, execArgv: readonly string[] = []): Player {
  const child = fork(fileURLToPath(new URL("./serve/player.js", import.meta.url)), [name], { execArgv: [...execArgv] });
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        const ended = (code: number | null) =>
          reject(new Error(`Expected an answer of ${name}, it ended with ${code}.`));
        child.once("exit", ended);
        child.once("message", (reply) => {
          child.off("exit", ended);
          resolve(reply as never);
        });
        child.send(question);
      }),
    close: () => child.disconnect(),
  };
}

function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
}

const seconds = option("seconds", 4);
const rounds = option("rounds", 5);
/**
 * Requests before the first round, a tenth of them where others were before: what is compiled late must not be measured, and
 * contenders differ in how much that is.
 */
const warmUp = option("warm-up", 10_000);
const only = process.argv.slice(2).filter((word, at, all) => !word.startsWith("--") && !all[at - 1]?.startsWith("--"));

const engine = openPlayer("engines");
const clients = openPlayer("clients");
const engines = await engine.ask<string[]>({ verb: "engines", count: ENGINES });

async function startContender(name: string): Promise<Contender> {
  if (name === DIRECT) return { name, url: engines[0] as string, player: engine };
  const player = openPlayer(name, process.env["BENCH_PROFILE"] === name ? ["--cpu-prof"] : []);
  return { name, url: await player.ask<string>({ verb: "proxy", name, engines }), player };
}

async function sampleOf({ url, player }: Contender, scene: Scene, duration: Load["duration"]): Promise<Sample> {
  const before = await player.ask<number>({ verb: "cpu" });
  const load = { ...scene, url, connections: CONNECTIONS, duration };
  const measured = await clients.ask<Measured>({ verb: "load", load });
  return { ...measured, cpuUs: ((await player.ask<number>({ verb: "cpu" })) - before) / measured.requests };
}

async function play(contenders: readonly Contender[], scene: Scene, isFirst: boolean): Promise<Sample[][]> {
  const answers: string[] = [];
  for (const { url } of contenders) answers.push(await clients.ask<string>({ verb: "ask", url, scene }));
  if (answers.some((answer) => answer !== answers[0]))
    throw new Error(`Expected equal answers, got ${answers.join("\n")}`);
  for (const contender of contenders) await sampleOf(contender, scene, { requests: isFirst ? warmUp : warmUp / 10 });
  const samples: Sample[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const at = (turn + round) % contenders.length;
      samples[at]?.push(await sampleOf(contenders[at] as Contender, scene, { seconds }));
    }
  }
  return samples;
}

const span = (values: readonly number[], digits = 0) =>
  `${median(values).toFixed(digits)} (${quantile(values, 0).toFixed(digits)} to ${quantile(values, 1).toFixed(digits)})`;
const ratio = (samples: readonly Sample[], others: readonly Sample[]) =>
  median(samples.map(({ perSecond }, round) => perSecond / (others[round] as Sample).perSecond)).toFixed(2);
const added = (samples: readonly Sample[], direct: readonly Sample[], key: "p50Ms" | "p99Ms") =>
  span(samples.map((sample, round) => sample[key] - (direct[round] as Sample)[key]));

const contenders: Contender[] = [];
for (const name of [DIRECT, ...Object.keys(PROXIES)]) contenders.push(await startContender(name));
const bare = contenders.findIndex(({ name }) => name === "node:http and undici");
const { version: undici } = createRequire(import.meta.url)("undici/package.json") as { version: string };
const { cpu, cores, os, node, kvroute, date, load } = describeMachine();
console.log(
  `kvroute ${kvroute}, ${date}: ${cpu}, ${cores} cores, load ${load.toFixed(1)}, ${os}, Node ${node}, undici ${undici}`,
);
console.log(`${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s: median (least to most).\n`);

const cpuUs = new Map<string, number>();
for (const [title, scene] of Object.entries(SCENES)) {
  if (!only.every((word) => title.includes(word))) continue;
  const samples = await play(contenders, scene, cpuUs.size === 0);
  const direct = samples[0] as Sample[];
  const head = [title, "requests/s", "of undici's", "added p50, ms", "added p99, ms", "CPU us/request"];
  const rows = contenders.map(({ name }, at) => {
    const own = samples[at] as Sample[];
    if (name === "serve") cpuUs.set(title, median(own.map(({ cpuUs }) => cpuUs)));
    return [
      name,
      span(own.map(({ perSecond }) => perSecond)),
      ratio(own, samples[bare] as Sample[]),
      added(own, direct, "p50Ms"),
      added(own, direct, "p99Ms"),
      name === DIRECT
        ? ""
        : span(
            own.map(({ cpuUs }) => cpuUs),
            1,
          ),
    ];
  });
  console.log(`${table([head, ...rows])}\n`);
}
const [short, long] = ["1 KB, plain", "100 KB, plain"].map((title) => cpuUs.get(title));
if (short !== undefined && long !== undefined) {
  console.log(`serve: ${((long - short) / 99).toFixed(2)} us of CPU time more for each further KB of prompt.`);
}
for (const player of new Set([engine, clients, ...contenders.map(({ player }) => player)])) player.close();
