// A fake engine in a process of its own, on the built package, whose time stands still until it is told to go on. It says where
// it listens, and "taken" for each request; told a moment, it lets everything happen up to there and says how it stands.
import { serveFakeEngine } from "kvroute/testing/node";

const { prefillMsPerToken, decodeMs, ...options } = JSON.parse(process.argv[2] ?? "{}");

let nowMs = 0;
let timers = [];

const clock = {
  now: () => nowMs,
  setTimeout: (callback, delayMs) => {
    const timer = { atMs: nowMs + delayMs, callback };
    timers.push(timer);
    return timer;
  },
  clearTimeout: (timer) => {
    timers = timers.filter((one) => one !== timer);
  },
};

const next = () => timers.reduce((first, timer) => (first && first.atMs <= timer.atMs ? first : timer), undefined);

function runUntil(untilMs) {
  for (let timer = next(); timer !== undefined && timer.atMs <= untilMs; timer = next()) {
    timers = timers.filter((one) => one !== timer);
    nowMs = timer.atMs;
    timer.callback();
  }
  nowMs = Math.max(nowMs, untilMs);
}

const engine = await serveFakeEngine({
  ...options,
  clock,
  timing: ({ prefillTokens, decodeRequests }) => ({
    prefillMs: prefillTokens * prefillMsPerToken,
    decodeMs: prefillTokens === 0 && decodeRequests > 0 ? decodeMs : 0,
  }),
  answer: ({ headers }) => {
    nowMs = Math.max(nowMs, Number(headers.get("x-now-ms")));
    process.send?.("taken"); // what it is told next, it hears when it has the request
    return undefined;
  },
});
process.on("message", (untilMs) => {
  runUntil(untilMs);
  const { generationTokens, finished, preemptions } = engine.stats();
  process.send?.({
    nextMs: next()?.atMs ?? null,
    generationTokens,
    finished: finished.stop + finished.length,
    preemptions,
  });
});
process.on("disconnect", () => process.exit());
process.send?.({ url: engine.url });
