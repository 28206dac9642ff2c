import fc from "fast-check";
import type { PoolUnderTest } from "../support/pool-under-test.js";
import type { CopyRef, ReservationRef, Side } from "../support/side.js";
import {
  type Choice,
  copiesChoice,
  copyChoice,
  freshChoice,
  hashChoice,
  hashesChoice,
  privateChoice,
  privatesChoice,
  reservationChoice,
  type Space,
} from "./choices.js";
import type { Call, World } from "./world.js";

type Planned = Choice<Call>;

/** A random call whose arguments are chosen when it runs; prints as the call that it became. */
class PoolCommand implements fc.Command<World, PoolUnderTest> {
  #text: string;

  constructor(
    name: string,
    readonly plan: Planned,
  ) {
    this.#text = `${name}(?)`;
  }

  check(world: Readonly<World>): boolean {
    return this.plan(world as World) !== undefined;
  }

  run(world: World): void {
    const call = this.plan(world);
    if (call === undefined) return;
    this.#text = call.text;
    world.step(call);
  }

  toString(): string {
    return this.#text;
  }
}

/** Every public call, valid and invalid. Where a pool may meet limits, each must be able to do so at its start alone. */
export function poolCommands(space: Space, limitsAllowed = false): fc.Arbitrary<fc.Command<World, PoolUnderTest>> {
  const hash = hashChoice(space);
  const hashes = hashesChoice(space);
  return fc.oneof(
    { weight: 3, arbitrary: lifeCycle(space, !limitsAllowed) },
    { weight: 1, arbitrary: settle },
    { weight: 7, arbitrary: fc.oneof(...reserving(space, hashes)) },
    { weight: 10, arbitrary: fc.oneof(...consuming(hash, hashes)) },
    { weight: 10, arbitrary: fc.oneof(...copying(space, hash, hashes)) },
    { weight: 1, arbitrary: command("hit", fc.tuple(hash), (side, one) => side.hit(one)) },
    { weight: 1, arbitrary: command("match", fc.tuple(hashes), (side, list) => side.match(list)) },
    { weight: 1, arbitrary: fc.oneof(...misuses.map(misuse)) },
  );
}

type Commands = fc.Arbitrary<PoolCommand>[];
type HashChoices = fc.Arbitrary<Choice<bigint>>;
type ListChoices = fc.Arbitrary<Choice<readonly bigint[]>>;

/**
 * A whole request, so that pools fill and evict within few commands.
 *
 * Copy by copy, only its first call can meet a limit; with batches, a later one could, and leave half a request behind.
 */
function lifeCycle(space: Space, inBatches: boolean): fc.Arbitrary<PoolCommand> {
  const choices = fc.tuple(hashesChoice(space), freshChoice(space));
  return command("lifeCycle", choices, (side, prompt, extra) => {
    const { capacity } = side.pool;
    const list = prompt.slice(0, capacity);
    const granted = side.reserveResident(list, Math.min(capacity, list.length + extra));
    if (granted === null) return null;
    const { reservation } = granted;
    const prefix = side.activate(reservation);
    const rest = list.slice(prefix.length);
    const copies = inBatches
      ? side.allocateAllCached(reservation, rest).copies
      : rest.map((hash) => side.allocateCached(reservation, hash).copy);
    side.cancel(reservation);
    if (inBatches) side.releaseChain([...prefix, ...copies]);
    else for (const copy of [...prefix, ...copies].reverse()) side.release(copy);
    return { granted, prefix, copies };
  });
}

/** Ends all that is open, so that a pool does not stay clogged. */
const settle = command("settle", fc.tuple(fc.constant((world: World) => world.releasable())), (side, claims) => {
  for (const reservation of side.reservations) reservation[Symbol.dispose]();
  for (const copy of claims) side.release(copy);
});

function reserving(space: Space, hashes: ListChoices): Commands {
  const fresh = freshChoice(space);
  const resident = hashes.map((choose): Choice<readonly bigint[]> => {
    return (world) => residentOnly(world, choose(world) ?? []);
  });
  return [
    command("reserve", fc.tuple(resident, fresh), (side, prefix, n) => side.reserve(prefix, n)),
    command("reserve", fc.tuple(resident, fresh), (side, prefix, n) => side.reserve(BigUint64Array.from(prefix), n)),
    command("reserve", fc.tuple(fresh), (side, n) => side.reserve([], n)),
    command("reserve", fc.tuple(hashes, fresh), (side, prefix, n) => side.reserve(prefix, n)),
    command("reserveResident", fc.tuple(hashes, fresh), (side, list, n) => side.reserveResident(list, list.length + n)),
    command("reserveResident", fc.tuple(hashes, fresh), (side, list, n) => side.reserveResident(list, n)),
  ];
}

function residentOnly(world: World, hashes: readonly bigint[]): readonly bigint[] {
  return hashes.filter((hash) => world.model.hit(hash) !== null);
}

function consuming(hash: HashChoices, hashes: ListChoices): Commands {
  const r = reservationChoice;
  return [
    command("activate", fc.tuple(r), (side, ref) => side.activate(ref)),
    command("allocatePrivate", fc.tuple(r), (side, ref) => side.allocatePrivate(ref)),
    command("allocateCached", fc.tuple(r, hash), (side, ref, one) => side.allocateCached(ref, one)),
    command("allocateAllPrivate", fc.tuple(r), (side, ref) => side.allocateAllPrivate(ref)),
    command("allocateAllCached", fc.tuple(r, hashes), (side, ref, list) => {
      return side.allocateAllCached(ref, list.slice(0, side.size(ref).freshLength));
    }),
    command("allocateAllCached", fc.tuple(r, hashes), (side, ref, list) => {
      return side.allocateAllCached(ref, BigUint64Array.from(list));
    }),
    command("cancel", fc.tuple(r), (side, ref) => side.cancel(ref)),
    command("disposeReservation", fc.tuple(ownOnly(r)), (side, ref) => side.disposeReservation(ref)),
  ];
}

/** Disposing a reservation of another pool is that pool's affair, and would end it for all runs that follow. */
function ownOnly(choices: fc.Arbitrary<Choice<ReservationRef>>): fc.Arbitrary<Choice<ReservationRef>> {
  return choices.map((choose) => (world) => {
    const ref = choose(world);
    return ref === "foreign" ? undefined : ref;
  });
}

function copying(space: Space, hash: HashChoices, hashes: ListChoices): Commands {
  const copies = copiesChoice(space);
  const privates = privatesChoice(space);
  return [
    command("cache", fc.tuple(privateChoice, hash), (side, copy, one) => side.cache(copy, one)),
    command("release", fc.tuple(copyChoice), (side, copy) => side.release(copy)),
    command("releaseAll", fc.tuple(copies), (side, list) => side.releaseAll(list)),
    command("releaseChain", fc.tuple(copies), (side, list) => side.releaseChain(list)),
    command("cacheAll", fc.tuple(privates, hashes), (side, list, names) => side.cacheAll(...pair(list, names))),
    command("cacheAllAlike", fc.tuple(privates, hash), (side, list, one) => {
      const names = list.map(() => one);
      return side.cacheAll(list, names);
    }),
  ];
}

function pair(copies: readonly CopyRef[], hashes: readonly bigint[]): [readonly CopyRef[], readonly bigint[]] {
  const length = Math.min(copies.length, hashes.length);
  return [copies.slice(0, length), hashes.slice(0, length)];
}

/** Arguments that are refused at the door, whatever the reservation. */
const misuses: readonly { text: string; act: (side: Side, ref: ReservationRef) => unknown }[] = [
  { text: "reserve([], -1)", act: (side) => side.reserve([], -1) },
  { text: "reserve([], 0.5)", act: (side) => side.reserve([], 0.5) },
  { text: "reserve([], NaN)", act: (side) => side.reserve([], Number.NaN) },
  { text: "reserve([-1n], 0)", act: (side) => side.reserve([-1n], 0) },
  { text: "reserve([2n ** 64n], 0)", act: (side) => side.reserve([1n << 64n], 0) },
  { text: "reserve([1], 0)", act: (side) => side.reserve([1 as unknown as bigint], 0) },
  { text: "reserveResident([1n], 0)", act: (side) => side.reserveResident([1n], 0) },
  { text: "match([0n, -1n])", act: (side) => side.match([0n, -1n]) },
  { text: "hit(2n ** 64n)", act: (side) => side.hit(1n << 64n) },
  { text: "hit(1)", act: (side) => side.hit(1 as unknown as bigint) },
  { text: "release('0')", act: (side) => side.release({ raw: "0" as unknown as number }) },
  { text: "releaseAll(['0'])", act: (side) => side.pool.releaseAll(["0" as unknown as number]) },
  { text: "cacheAll([], [1n])", act: (side) => side.cacheAll([], [1n]) },
  { text: "allocateCached(-1n)", act: (side, ref) => side.allocateCached(ref, -1n) },
  { text: "allocateAllCached([2n ** 64n])", act: (side, ref) => side.allocateAllCached(ref, [1n << 64n]) },
];

function misuse({ text, act }: (typeof misuses)[number]): fc.Arbitrary<PoolCommand> {
  return command(text, fc.tuple(reservationChoice), act);
}

type Choices<A extends unknown[]> = { [K in keyof A]: Choice<A[K]> };

/** A command of a verb and choices for its arguments. */
export function command<A extends unknown[]>(
  name: string,
  choices: fc.Arbitrary<Choices<A>>,
  verb: (side: Side, ...args: A) => unknown,
): fc.Arbitrary<PoolCommand> {
  return choices.map((chosen) => {
    return new PoolCommand(name, (world) => {
      const args = chosen.map((choose) => choose(world));
      if (args.includes(undefined)) return undefined;
      world.know(args.flat().filter((value) => typeof value === "bigint"));
      return { text: `${name}(${args.map(print).join(", ")})`, act: (side) => verb(side, ...(args as A)) };
    });
  });
}

function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.slice(0, 12).map(print).join(", ")}${value.length > 12 ? ", …" : ""}]`;
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
