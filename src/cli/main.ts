#!/usr/bin/env node
import { run } from "./run.js";

const { stdin, stdout, stderr, env } = process;

// A reader that goes away shows up as a failed write, which is answered there.
stdout.on("error", () => undefined);
stderr.on("error", () => undefined);

process.exitCode = await run({ argv: process.argv.slice(2), env, stdin, stdout, stderr, now: () => performance.now() });
