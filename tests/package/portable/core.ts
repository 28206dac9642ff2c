import vectors from "kvroute-vectors";
import type { BlockPool } from "../../../src/index.js";
import { replayTrace } from "../../conformance/replay.js";
import { same } from "../../support/agree.js";
import { type Case, linesOf, type Modules, throwsCode } from "./parts.js";

const POOLS = 50;

/** Computes a prompt in a pool from beginning to end. Returns how many of its blocks were cached before. */
function serve(pool: BlockPool, prompt: BigUint64Array): number {
  const outcome = pool.reserveResidentPrefix(prompt, prompt.length);
  if (outcome === null) throw new Error("Expected room for the prompt.");
  const prefix = pool.activatePrefix(outcome.reservation);
  const { ids } = pool.allocateAllCached(outcome.reservation, prompt.subarray(prefix.length));
  pool.releaseChain(Float64Array.of(...prefix, ...ids));
  return prefix.length;
}

/** Replays the recorded traces that the bundle carries. */
const traces: readonly Case[] = Object.entries(vectors)
  .filter(([file]) => file.startsWith("block-pool/"))
  .map(([file, text]) => ({
    name: `a pool does what was recorded of the original: ${file}`,
    run({ kvroute }) {
      const { capacity, note } = JSON.parse(text.slice(0, text.indexOf("\n"))) as { capacity: number; note: string };
      const create = (options: { capacity: number }) => new kvroute.BlockPool(options);
      const subject = { name: "BlockPool", create, verify: () => undefined };
      replayTrace(subject, { file, capacity, note, lines: linesOf(text) }, 1);
    },
  }));

export const coreCases: readonly Case[] = [
  {
    name: "a prompt is computed once, and cached until room is needed",
    run({ kvroute }) {
      const pool = new kvroute.BlockPool({ capacity: 8 });
      const prompt = BigUint64Array.of(11n, 12n, 13n, 2n ** 64n - 1n);
      same("cached at first", 0, serve(pool, prompt));
      same("cached then", 4, serve(pool, prompt));
      same("match", { resident: 4, active: 0 }, pool.matchPrefix(prompt));
      const others = BigUint64Array.from({ length: 8 }, (_, at) => BigInt(100 + at));
      const removed = pool.reserve([], 8)?.removed;
      same("evicted, leaf first", [2n ** 64n - 1n, 13n, 12n, 11n], Array.from(removed ?? []));
      same("no room", null, pool.reserveResidentPrefix(others, 8));
      same("counters", [8, 0, 0], [pool.numActive, pool.numActiveRefs, pool.numInactive]);
    },
  },
  ...traces,
  {
    name: `${POOLS} pools live at once, and none knows of another`,
    run({ kvroute }) {
      const pools = Array.from({ length: POOLS }, (_, at) => new kvroute.BlockPool({ capacity: at + 1 }));
      const promptOf = (at: number) => BigUint64Array.from({ length: at + 1 }, (_, block) => BigInt(1000 * at + block));
      for (const [at, pool] of pools.entries()) serve(pool, promptOf(at));
      for (const [at, pool] of pools.entries()) {
        same("own blocks", at + 1, pool.matchPrefix(promptOf(at)).resident);
        same("blocks of the next", 0, pool.matchPrefix(promptOf((at + 1) % POOLS)).resident);
      }
    },
  },
  {
    name: "a stale id and a reservation of another pool are refused, and change nothing",
    run({ kvroute }) {
      const pool = new kvroute.BlockPool({ capacity: 4 });
      const other = new kvroute.BlockPool({ capacity: 4 });
      const outcome = pool.reserve([], 3);
      if (outcome === null) throw new Error("Expected room.");
      const id = pool.allocatePrivate(outcome.reservation);
      pool.release(id);
      const again = pool.allocatePrivate(outcome.reservation);
      throwsCode("KVROUTE_UNKNOWN_COPY", () => pool.release(id));
      throwsCode("KVROUTE_UNKNOWN_COPY", () => other.release(again));
      throwsCode("KVROUTE_FOREIGN_RESERVATION", () => other.cancel(outcome.reservation));
      same("counters", [2, 1], [pool.numActive, pool.numActiveRefs]); // one of them is reserved
      pool.release(again);
      pool.cancel(outcome.reservation);
      throwsCode("KVROUTE_RESERVATION_CLOSED", () => pool.allocatePrivate(outcome.reservation));
    },
  },
  {
    name: "errors are typed, and say what was expected and what came",
    run({ kvroute }) {
      const error = throwsCode("KVROUTE_CAPACITY", () => new kvroute.BlockPool({ capacity: 0 }));
      same("class", true, error instanceof kvroute.CapacityError && error instanceof kvroute.KvrouteError);
      same("message", "Expected a capacity that is a whole number from 1 to 16777215 blocks, got 0.", error.message);
      const pool = new kvroute.BlockPool({ capacity: 4 });
      throwsCode("KVROUTE_ARGUMENT_TYPE", () => pool.prefixHit(1 as never));
      throwsCode("KVROUTE_ARGUMENT_RANGE", () => pool.prefixHit(2n ** 64n));
      throwsCode("KVROUTE_MISSING_PREFIX", () => pool.reserve([7n], 0));
    },
  },
  {
    name: "a memory limit holds, and what was there stays",
    run({ kvroute }) {
      const pool = new kvroute.BlockPool({ capacity: 1_000_000, maxMemoryBytes: 2 ** 20 });
      throwsCode("KVROUTE_MEMORY_LIMIT", () => pool.reserve([], 1_000_000));
      same("cached", 0, serve(pool, BigUint64Array.of(1n, 2n)));
      same("cached then", 2, serve(pool, BigUint64Array.of(1n, 2n)));
    },
  },
  {
    name: "a compiled core is taken from the caller, and what is none is refused",
    async run({ kvroute }) {
      const module = await kvroute.compileCore();
      const pool = new kvroute.BlockPool({ capacity: 4, module });
      same("cached", 0, serve(pool, BigUint64Array.of(1n)));
      throwsCode("KVROUTE_CORE_UNAVAILABLE", () => new kvroute.BlockPool({ capacity: 4, module: {} as never }));
    },
  },
  { name: "a disposed pool says so", run: disposes },
];

function disposes({ kvroute }: Modules): void {
  const pool = new kvroute.BlockPool({ capacity: 4 });
  const key = (Symbol as { dispose?: symbol }).dispose ?? Symbol.for("Symbol.dispose");
  (pool as unknown as Record<symbol, () => void>)[key]?.();
  throwsCode("KVROUTE_DISPOSED", () => pool.numActive);
  pool.dispose();
}
