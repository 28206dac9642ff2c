import { createReadStream, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzip, webStreamOf } from "../../src/node/bytes.js";
import { readTrace, type TraceRequest } from "../../src/sim/trace.js";

// The only place that knows where the shared traces are. Tests that need them are skipped, visibly, where they are not.

const TRACES = fileURLToPath(new URL("../../../shared/traces/", import.meta.url));

export const CONVERSATION = `${TRACES}mooncake-conversation.jsonl.gz`;
export const AGENT = `${TRACES}agent-magagent-blocks.jsonl.gz`;

export const areThere = existsSync(CONVERSATION);
if (!areThere) console.log("Skipped: the figures of real traces, since ../shared/traces is not there.");

export const requests = (file: string): AsyncIterable<TraceRequest> =>
  readTrace(webStreamOf(createReadStream(file)), { name: file, gunzip });
