import { describe, expect, test } from "vitest";
import type { BlockPool } from "../../src/core/block-pool.js";
import { KvrouteError } from "../../src/errors.js";
import { blockPool } from "../support/subjects.js";
import { cached, counters, idle, inactive, privateCopy, reserved } from "./laws/law.js";

/** A pool with one of each: private copies, a held and an inactive one, pins and room of a reservation, a stale id. */
function furnished() {
  const pool = blockPool.create({ capacity: 9 });
  const stale = privateCopy(pool);
  pool.release(stale);
  const [held] = cached(pool, 1n) as [number];
  const [free] = idle(pool, 2n, 3n) as [number];
  const { reservation } = reserved(pool, [3n], 2);
  return { pool, stale, held, free, reservation, own: privateCopy(pool), other: privateCopy(pool) };
}

type Furnished = ReturnType<typeof furnished>;
type ErrorClass = abstract new (...args: never[]) => KvrouteError;

export type Refusal = readonly [
  title: string,
  call: (made: Furnished) => unknown,
  error: ErrorClass,
  message: RegExp,
  details?: object,
];

/** Passes what the types forbid, as JavaScript programs may. */
export function wrong<T>(value: unknown): T {
  return value as T;
}

/** Makes a pool with options that the types forbid. */
export function create(options: unknown): BlockPool {
  return blockPool.create(wrong(options));
}

/** Runs each case on a pool of its own: the typed error, its sentence with both values, and nothing changed. */
export function refusals(about: string, cases: readonly Refusal[]): void {
  describe(about, () => {
    for (const [title, call, error, message, details = {}] of cases) {
      test(title, () => {
        const made = furnished();
        const before = visible(made);
        const thrown = caught(() => call(made));
        expect(thrown).toBeInstanceOf(error);
        expect(thrown).toBeInstanceOf(KvrouteError);
        expect(thrown).toMatchObject({ name: error.name, message: expect.stringMatching(message), ...details });
        expect(visible(made)).toEqual(before);
        blockPool.verify(made.pool);
      });
    }
  });
}

function visible({ pool, reservation }: Furnished): unknown {
  const hits = [1n, 2n, 3n, 4n].map((hash) => pool.prefixHit(hash));
  return [counters(pool), inactive(pool), hits, reservation.length, reservation.freshLength];
}

function caught(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}
