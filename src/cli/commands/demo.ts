import { Readable } from "node:stream";
import type { Command } from "commander";
import { webStreamOf } from "../../node/bytes.js";
import { generateTrace } from "../../sim/generate.js";
import type { TraceInput } from "../input.js";
import { type CliIo, write } from "../io.js";
import { tracePieces } from "./generate.js";
import { REPLAY_DEFAULTS, replayInput } from "./replay.js";

const DEMO_REQUESTS = 50_000; // a second or two
const DEMO_SEED = 1;
const DEMO_UTILISATION = 0.9;

const NEXT_STEPS = `
What to try next:
  npm run serve                                          the router before two fake engines, and a curl line to try
  npx kvroute serve --worker http://host:8000            the router before your own
  npx kvroute replay your-trace.jsonl.gz --workers 8     your own traffic
  npx kvroute generate --output sample.jsonl.gz          a trace to play with
  npx kvroute replay --help                              all options, and the form of a trace
  docs/                                                  how it works
`;

/** Adds `kvroute demo` to the program. */
export function addDemo(program: Command, io: CliIo): void {
  program
    .command("demo")
    .summary("replay a made-up trace, to see what this is about")
    .description("Makes up a trace of conversations in memory and replays it through every policy.")
    .action(async () => {
      const name = "a made-up trace of conversations";
      const pieces = [...tracePieces(generateTrace({ requests: DEMO_REQUESTS, seed: DEMO_SEED }))];
      const totalBytes = pieces.reduce((total, piece) => total + piece.length, 0);
      const settings = { ...REPLAY_DEFAULTS, utilisation: DEMO_UTILISATION };
      const open: TraceInput["open"] = (onBytes) => webStreamOf(Readable.from(pieces), { onBytes });
      await write(io.stdout, await replayInput({ name, totalBytes, open }, name, settings, io));
      await write(io.stdout, NEXT_STEPS);
    });
}
