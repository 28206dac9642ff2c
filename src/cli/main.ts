#!/usr/bin/env node
import { run } from "./run.js";

const { stdin, stdout, stderr, env } = process;

// A reader that goes away shows up as a failed write, which is answered there.
stdout.on("error", () => undefined);
stderr.on("error", () => undefined);

const STOPPING = ["SIGINT", "SIGTERM"] as const;

const onSignal = (listener: () => void): (() => void) => {
  for (const signal of STOPPING) process.on(signal, listener);
  return () => {
    for (const signal of STOPPING) process.off(signal, listener);
  };
};

const argv = process.argv.slice(2);
process.exitCode = await run({ argv, env, stdin, stdout, stderr, now: () => performance.now(), onSignal });
