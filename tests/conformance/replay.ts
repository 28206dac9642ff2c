import { same } from "../support/agree.js";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { Side } from "../support/side.js";
import type { Line, Trace } from "./trace.js";

/** Replays every line of a trace. A difference is an error that names file, line and operation. */
export function replayTrace<P extends PoolUnderTest>(subject: Subject<P>, trace: Trace, verifyEvery: number): void {
  const pool = subject.create({ capacity: trace.capacity });
  const replay = new Replay(new Side(pool));
  trace.lines.forEach((text, index) => {
    try {
      replay.step(JSON.parse(text) as Line);
      if (index % verifyEvery === 0 || index === trace.lines.length - 1) subject.verify(pool);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`${trace.file}:${index + 2}: ${message}\n  ${text}`, { cause: error });
    }
  });
}

/** One pool under replay. Labels are numbered as the side numbers: in order of first appearance. */
export class Replay {
  readonly #hashes: string[] = []; // by number of copy, once it is cached

  constructor(readonly side: Side) {}

  get hashesSeen(): Set<bigint> {
    return new Set(Object.values(this.#hashes).map(BigInt));
  }

  step(line: Line): void {
    this.#operate(line);
    const { active, refs, inactive } = line;
    same("counters", { active, refs, inactive }, this.side.counters());
  }

  #operate(line: Line): void {
    const { side } = this;
    switch (line.op) {
      case "reserve":
        this.#reserve(line);
        break;
      case "prefixHit":
        same("result", line.result, side.hit(BigInt(line.hash)));
        break;
      case "activatePrefix":
        same("copies", line.copies.map(numberOf), side.activate(numberOf(line.id)));
        break;
      case "allocatePrivate":
        same("copy", numberOf(line.copy), side.allocatePrivate(numberOf(line.id)));
        break;
      case "allocateCached": {
        const expected = { copy: numberOf(line.copy), becameVisible: line.becameVisible };
        same("copy", expected, side.allocateCached(numberOf(line.id), BigInt(line.hash)));
        this.#hashes[expected.copy] = line.hash;
        break;
      }
      case "cachePrivate":
        same("becameVisible", line.becameVisible, side.cache(numberOf(line.copy), BigInt(line.hash)));
        this.#hashes[numberOf(line.copy)] = line.hash;
        break;
      case "release":
        side.release(numberOf(line.copy));
        break;
      case "cancel":
        side.cancel(numberOf(line.id));
        break;
      case "lru":
        same("list", line.list, this.#evictionOrder());
        break;
      default:
        throw new Error(`Unknown operation ${JSON.stringify(line satisfies never)}.`);
    }
    if ("len" in line) same("size", { length: line.len, freshLength: line.freshLen }, side.size(numberOf(line.id)));
  }

  #reserve(line: Extract<Line, { op: "reserve" }>): void {
    const prefix = line.prefix.map(BigInt);
    const outcome = this.side.reserve(prefix, line.fresh);
    same("outcome", line.ok ? expectedOutcome(line) : null, outcome);
    if (line.ok) same("pinned", line.pinned.map(numberOf), pinnedBy(this.side, prefix));
  }

  #evictionOrder(): unknown {
    return this.side.lru().map((copy) => [`c${copy}`, this.#hashes[copy]]);
  }
}

export function numberOf(label: string): number {
  return Number(label.slice(1));
}

function expectedOutcome(line: Extract<Line, { ok: true }>): unknown {
  return {
    reservation: numberOf(line.id),
    length: line.len,
    freshLength: line.freshLen,
    removed: line.removed.map(BigInt),
  };
}

/**
 * The copies that a reservation made this instant has pinned, seen from outside.
 *
 * A second reservation of the same prefix resolves to the same copies; activated, it names them. As the first one
 * holds them all, releasing them moves none: the pool is afterwards as it was.
 */
function pinnedBy(side: Side, prefix: readonly bigint[]): number[] {
  const { pool } = side;
  const probe = pool.reserve(BigUint64Array.from(prefix), 0);
  if (probe === null) throw new Error("A pinned prefix could not be pinned again.");
  const ids = pool.activatePrefix(probe.reservation);
  pool.cancel(probe.reservation);
  pool.releaseAll(ids);
  return side.known(ids);
}
