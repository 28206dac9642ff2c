import vectors from "kvroute-vectors";
import type { SelectionCache } from "../../../src/index.js";
import { replayTrace } from "../../conformance/selection-cache-replay.js";
import type { Trace } from "../../conformance/selection-cache-trace.js";
import { same } from "../../support/agree.js";
import { type Case, linesOf, type Modules, throwsCode } from "./parts.js";

/** Replays the recorded traces that the bundle carries. What is inside the cache cannot be seen from here. */
const traces: readonly Case[] = Object.entries(vectors)
  .filter(([file]) => file.startsWith("selection-cache/"))
  .map(([file, text]) => ({
    name: `a selection cache does what was recorded of the original: ${file}`,
    run({ kvroute }) {
      const header = JSON.parse(text.slice(0, text.indexOf("\n"))) as Trace["header"];
      const lines = linesOf(text).filter((line) => !line.startsWith('{"op":"order"'));
      const orderLength = (cache: SelectionCache) => cache.size; // the original keeps no tombstones where it was recorded
      const subject = {
        name: "SelectionCache",
        create: (options: { ttlMs?: number }) => new kvroute.SelectionCache(options),
        order: (cache: SelectionCache) => new Array(cache.size),
        orderLength,
      };
      replayTrace(subject, { file, header, lines });
    },
  }));

/** A service with two workers, of which "a" has computed the first 1,024 tokens. */
function stage({ kvroute }: Modules) {
  let nowMs = 0;
  const clock = { now: () => nowMs, setTimeout: () => 0, clearTimeout: () => undefined };
  const service = new kvroute.SelectionService({ clock, random: () => 0 });
  for (const workerId of ["a", "b"]) {
    service.workers.add({ workerId, endpoint: `http://${workerId}:8000`, blockSize: 16, totalKvBlocks: 16_384 });
  }
  const tokens = Array.from({ length: 1_024 }, (_, at) => at);
  service.reserve({ selectionId: "earlier", workerId: "a", tokenIds: tokens });
  service.prefillComplete("earlier");
  service.free("earlier");
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { service, tokens, pass };
}

export const selectionCases: readonly Case[] = [
  ...traces,
  {
    name: "a request is selected, booked, followed and freed",
    run(modules) {
      const { service, tokens } = stage(modules);
      const tokenIds = [...tokens, ...Array.from({ length: 64 }, (_, at) => 9_000 + at)];
      const selection = service.select({ selectionId: "chat", tokenIds });
      same("worker", { workerId: "a", dpRank: 0 }, selection.worker);
      same("tokens", [1_024, 64], [selection.cachedTokens, selection.effectivePrefillTokens]);
      same("existing", false, service.reserve({ selectionId: "chat" }).existing);
      same("existing", true, service.reserve({ selectionId: "chat" }).existing);
      const loadOf = () => service.loads()[0]?.loads[0];
      same("prefill", 64, loadOf()?.activePrefillTokens);
      service.prefillComplete("chat");
      service.outputBlock("chat");
      same("load", [0, 69, 1], [loadOf()?.activePrefillTokens, loadOf()?.activeBlocks, loadOf()?.activeRequests]);
      same("freed", [true, false], [service.free("chat"), service.free("chat")]);
      same("load", [0, 0], [loadOf()?.activeBlocks, loadOf()?.activeRequests]);
    },
  },
  {
    name: "a booking is a lease: it ends when nothing is heard of it",
    run(modules) {
      const { service, tokens, pass } = stage(modules);
      service.selectAndReserve({ selectionId: "lost", tokenIds: tokens });
      pass(24 * 3_600_000);
      same(
        "expired",
        ["lost"],
        Array.from(service.expire(), ({ selectionId }) => selectionId),
      );
      throwsCode("KVROUTE_UNKNOWN_BOOKING", () => service.prefillComplete("lost"));
    },
  },
  {
    name: "a service takes time, ids and randomness from the runtime where it is given none",
    run({ kvroute }) {
      const service = new kvroute.SelectionService();
      throwsCode("KVROUTE_NO_WORKER", () => service.select({ tokenIds: [1] }));
      service.workers.add({ workerId: 7n, endpoint: "http://seven:8000", blockSize: 16 });
      const booking = service.selectAndReserve({ tokenIds: Array.from({ length: 32 }, (_, at) => at) });
      same("an id", true, /^[0-9a-f-]{36}$/.test(booking.selectionId));
      same("freed", true, service.free(booking.selectionId));
    },
  },
];
