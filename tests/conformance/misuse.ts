import { same, sameState } from "../support/agree.js";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { type CopyRef, type Outcome, outcomeOf, Side } from "../support/side.js";
import { naive } from "../support/subjects.js";
import { numberOf, Replay } from "./replay.js";
import type { Line, Operation, Panic } from "./trace.js";

const codes: readonly (readonly [RegExp, string])[] = [
  [/^capacity must be/, "KVROUTE_CAPACITY"],
  [/is no longer resident$/, "KVROUTE_MISSING_PREFIX"],
  [/an unknown block copy$/, "KVROUTE_UNKNOWN_COPY"],
  [/^cached-copy reference underflow$/, "KVROUTE_NOT_REFERENCED"],
  [/^only a private copy/, "KVROUTE_ALREADY_CACHED"],
  [/^reservation has no fresh capacity$/, "KVROUTE_RESERVATION_EXHAUSTED"],
];

/** Ids that no pool has issued before its first allocation. */
const neverIssued = [0, 1, 255, 2 ** 24 - 1, 2 ** 24, 2 ** 32 + 1, 2 ** 52, Number.MAX_SAFE_INTEGER];

/** Commits one misuse, as a single call and as a batch of one, and checks its error and that nothing changed. */
export function commit<P extends PoolUnderTest>(subject: Subject<P>, panic: Panic): void {
  if (panic.op.op === "new") {
    const { capacity } = panic.op;
    const outcome = outcomeOf(() => subject.create({ capacity }));
    sameCode(panic, outcome);
    return;
  }
  const scene = new Scene(subject, panic.capacity, panic.setup);
  for (const call of callsOf(panic.op)) {
    const outcome = outcomeOf(() => call(scene.actual));
    sameCode(panic, outcome);
    if (panic.before !== undefined) same("counters", panic.before, scene.actual.counters());
    scene.compare();
  }
  scene.finish();
}

/** Uses a reservation of a second pool; both pools must stay as they were. */
export function commitForeign<P extends PoolUnderTest>(subject: Subject<P>, panic: Panic): void {
  const { op } = panic;
  if (!("id" in op)) throw new Error(`${panic.name}: expected an operation on a reservation`);
  const other = new Scene(subject, panic.foreignCapacity ?? 0, panic.foreignSetup ?? []);
  const reservation = other.actual.reservation(numberOf(op.id.slice(2)));
  const scene = new Scene(subject, panic.capacity, panic.setup);
  for (const call of callsOf({ ...op, id: "foreign" })) {
    const outcome = outcomeOf(() => call(new Side(scene.actual.pool, reservation)));
    same("code", "KVROUTE_FOREIGN_RESERVATION", "code" in outcome ? outcome.code : outcome);
    scene.compare();
    other.compare();
  }
  scene.finish();
  other.finish();
}

/** The same history in the pool under test and in the naive one. */
class Scene<P extends PoolUnderTest> {
  readonly actual: Side;
  readonly #expected: Side;
  readonly #hashes: Set<bigint>;
  readonly #verify: () => void;

  constructor(subject: Subject<P>, capacity: number, setup: readonly Line[]) {
    const pool = subject.create({ capacity });
    this.actual = new Side(pool);
    this.#expected = new Side(naive.create({ capacity }));
    this.#verify = () => subject.verify(pool);
    const replay = new Replay(this.actual);
    const model = new Replay(this.#expected);
    for (const line of setup) {
      replay.step(line);
      model.step(line);
    }
    this.#hashes = model.hashesSeen;
  }

  compare(): void {
    sameState(this.#expected, this.actual, this.#hashes);
    this.#verify();
  }

  /** Ends all that is open in both pools, which shows what pins, references and room were still accounted for. */
  finish(): void {
    for (const side of [this.#expected, this.actual]) {
      for (const reservation of side.reservations) reservation[Symbol.dispose]();
    }
    this.compare();
    for (let copy = 0; copy < this.actual.ids.length; copy++) {
      for (let used = true; used; this.compare()) {
        const outcomes = [this.#expected, this.actual].map((side) => outcomeOf(() => side.release(copy)));
        same(`release of c${copy} at the end`, ...codesOf(outcomes));
        used = outcomes.every((outcome) => "value" in outcome);
      }
    }
    const { capacity } = this.actual.pool;
    same("last victims", this.#expected.reserve([], capacity), this.actual.reserve([], capacity));
    this.compare();
  }
}

function codesOf(outcomes: readonly Outcome[]): [unknown, unknown] {
  const [first, second] = outcomes.map((outcome) => ("code" in outcome ? outcome.code : "done"));
  return [first, second];
}

function sameCode(panic: Panic, outcome: Outcome): void {
  const code = codes.find(([pattern]) => pattern.test(panic.panic))?.[1];
  if (code === undefined) throw new Error(`${panic.name}: no code is known for "${panic.panic}"`);
  same("code", code, "code" in outcome ? outcome.code : outcome);
}

type Call = (side: Side) => unknown;

/** The single call and its batch of one. */
function callsOf(operation: Operation): Call[] {
  switch (operation.op) {
    case "reserve": {
      const prefix = operation.prefix.map(BigInt);
      const { fresh } = operation;
      return [(side) => side.reserve(prefix, fresh), (side) => side.reserve(BigUint64Array.from(prefix), fresh)];
    }
    case "activatePrefix":
      return [(side) => side.activate(reservationOf(operation.id))];
    case "cancel":
      return [(side) => side.cancel(reservationOf(operation.id))];
    case "allocatePrivate":
      return [(side) => side.allocatePrivate(reservationOf(operation.id))];
    case "allocateCached": {
      const id = reservationOf(operation.id);
      const hash = BigInt(operation.hash);
      return [(side) => side.allocateCached(id, hash), (side) => side.allocateAllCached(id, [hash])];
    }
    case "cachePrivate": {
      const hash = BigInt(operation.hash);
      return refsOf(operation.copy).flatMap((copy) => [
        (side: Side) => side.cache(copy, hash),
        (side: Side) => side.cacheAll([copy], [hash]),
      ]);
    }
    case "release":
      return refsOf(operation.copy).flatMap((copy) => [
        (side: Side) => side.release(copy),
        (side: Side) => side.releaseAll([copy]),
        (side: Side) => side.releaseChain([copy]),
      ]);
    default:
      throw new Error(`${operation.op} cannot be misused.`);
  }
}

function reservationOf(label: string): number | "foreign" {
  return label === "foreign" ? label : numberOf(label);
}

function refsOf(label: string | null): CopyRef[] {
  return label === null ? neverIssued.map((raw) => ({ raw })) : [numberOf(label)];
}
