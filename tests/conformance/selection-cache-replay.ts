import type { PeekedSelection, PendingSelection } from "../../src/selection/cache.js";
import type { CacheSubject, CacheUnderTest } from "../model/selection-cache-subject.js";
import { same } from "../support/agree.js";
import type { InsertLine, Line, Seen, Trace } from "./selection-cache-trace.js";

/** Of traces with as many lines, the order is listed in full now and then only. */
export const LARGE_LINES = 4_000;

/** Replays every line of a trace. A difference is an error that names file, line and operation. */
export function replayTrace<C extends CacheUnderTest>(subject: CacheSubject<C>, { file, header, lines }: Trace): void {
  const { ttlMs, maxEntries, maxBytes } = header;
  const cache = subject.create({ ttlMs, maxEntries: maxEntries ?? Infinity, maxBytes: maxBytes ?? Infinity });
  const every = lines.length < LARGE_LINES ? 1 : 101;
  lines.forEach((text, index) => {
    try {
      const line = JSON.parse(text) as Line;
      operate(cache, line);
      const { len, orderLen, totalBytes } = line;
      const counters = { len: cache.size, orderLen: subject.orderLength(cache), totalBytes: cache.totalBytes };
      same("counters", { len, orderLen, totalBytes }, counters);
      if (line.op === "order") same("list", line.list, subject.order(cache));
      else if (index % every === 0) same("length of the order", line.len, subject.order(cache).length);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`${file}:${index + 2}: ${message}\n  ${text}`, { cause: error });
    }
  });
}

function operate(cache: CacheUnderTest, line: Line): void {
  switch (line.op) {
    case "insert":
      same("generation", line.generation, cache.insert(line.id, selectionOf(line), line.nowMs));
      break;
    case "insertAt":
      same("generation", line.generation, cache.insert(line.id, selectionOf(line), line.nowMs, line.insertedAtMs));
      break;
    case "peek":
      same("result", line.result, seen(cache.peek(partitionOf(line), line.id, line.nowMs)));
      break;
    case "remove":
      same("removed", line.removed, cache.remove(partitionOf(line), line.id, line.generation));
      break;
    case "discard":
      same("removed", line.removed, cache.discard(partitionOf(line), line.id));
      break;
    case "order":
      break; // read after every line
    default:
      throw new Error(`Unknown operation ${JSON.stringify(line satisfies never)}.`);
  }
}

function partitionOf({ model, group }: { model: string; group: string }) {
  return { modelName: model, routingGroup: group };
}

function selectionOf(line: InsertLine): PendingSelection {
  const { hashes, workerId, dpRank, islTokens, effectivePrefillTokens, trackPrefillTokens } = line;
  return {
    partition: partitionOf(line),
    worker: { workerId: BigInt(workerId), dpRank },
    sequenceHashes: typeof hashes === "number" ? new BigUint64Array(hashes) : BigUint64Array.from(hashes, BigInt),
    islTokens,
    effectivePrefillTokens,
    expectedOutputTokens: line.expectedOutputTokens ?? undefined,
    trackPrefillTokens,
    loraName: line.lora ?? undefined,
  };
}

function seen(peeked: PeekedSelection | null): Seen | null {
  if (peeked === null) return null;
  const { worker, sequenceHashes, expectedOutputTokens, loraName, ...rest } = peeked.selection;
  const { islTokens, effectivePrefillTokens, trackPrefillTokens } = rest;
  return {
    workerId: String(worker.workerId),
    dpRank: worker.dpRank,
    generation: peeked.generation,
    islTokens,
    effectivePrefillTokens,
    expectedOutputTokens: expectedOutputTokens ?? null,
    trackPrefillTokens,
    lora: loraName ?? null,
    hashCount: sequenceHashes.length,
  };
}
