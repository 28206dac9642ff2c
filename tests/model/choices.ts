import fc from "fast-check";
import type { CopyRef, ReservationRef } from "../support/side.js";
import type { World } from "./world.js";

/** Picks something when the command runs, from what the model then holds; `undefined` if there is nothing to pick. */
export type Choice<T> = (world: World) => T | undefined;

/** Where the arguments of random commands come from. */
export interface Space {
  readonly capacity: fc.Arbitrary<number>;
  readonly hash: fc.Arbitrary<bigint>;
  /** How many blocks a list or a request has. */
  readonly blocks: fc.Arbitrary<number>;
  /** The i-th hash after one, for runs of new hashes. */
  readonly follow?: (hash: bigint, i: number) => bigint;
}

/** Spreads runs over all 64 bits; the factor is odd, so that a run never meets itself. */
export function scattered(hash: bigint, i: number): bigint {
  return BigInt.asUintN(64, hash + BigInt(i) * 0x9e37_79b9_7f4a_7c15n);
}

const nth = fc.nat({ max: 0xffff });

/** Counted from the end, so that shrinking to 0 means the newest. */
function pick<T>(list: readonly T[], n: number): T | undefined {
  return list[list.length - 1 - (n % Math.max(1, list.length))];
}

/** Blocks to set aside: mostly few enough for the pool, now and then beyond all bounds. */
export function freshChoice(space: Space): fc.Arbitrary<Choice<number>> {
  const some = space.blocks.map((blocks): Choice<number> => {
    return (world) => blocks % (world.model.pool.capacity + 1);
  });
  const absurd = fc.constantFrom(2 ** 31, 2 ** 32, 2 ** 53 - 1).map(
    (blocks): Choice<number> =>
      () =>
        blocks,
  );
  return fc.oneof({ weight: 30, arbitrary: some }, { weight: 1, arbitrary: absurd });
}

/** A hash of the space, or more often one that is resident at the time. */
export function hashChoice(space: Space): fc.Arbitrary<Choice<bigint>> {
  const fresh = space.hash.map(
    (hash): Choice<bigint> =>
      () =>
        hash,
  );
  const resident = fc.tuple(nth, space.hash).map(([n, other]): Choice<bigint> => {
    return (world) => pick(world.model.pool.residentHashes(), n) ?? other;
  });
  return fc.oneof({ weight: 2, arbitrary: fresh }, { weight: 3, arbitrary: resident });
}

/** A resident run, hashes that are new, or a mixture; a list as often as a typed array. */
export function hashesChoice(space: Space): fc.Arbitrary<Choice<readonly bigint[]>> {
  const { follow = scattered } = space;
  const mixture = fc.array(hashChoice(space), { maxLength: 4 }).map((choices): Choice<readonly bigint[]> => {
    return (world) => choices.map((choose) => choose(world) ?? 0n);
  });
  const run = fc.tuple(nth, space.blocks).map(([from, count]): Choice<readonly bigint[]> => {
    return (world) => someOf(world.model.pool.residentHashes(), from, count);
  });
  const news = fc.tuple(space.hash, space.blocks).map(([first, count]): Choice<readonly bigint[]> => {
    return () => Array.from({ length: count }, (_, i) => follow(first, i));
  });
  return fc.oneof(mixture, run, news);
}

/** A run of a list, from anywhere in it; nothing if there is nothing. */
function someOf<T>(list: readonly T[], from: number, count: number): T[] | undefined {
  if (list.length === 0) return undefined;
  const start = from % list.length;
  return list.slice(start, start + count);
}

/** An open reservation, or now and then any one ever made, or one of another pool. */
export const reservationChoice: fc.Arbitrary<Choice<ReservationRef>> = fc.oneof(
  {
    weight: 12,
    arbitrary: nth.map(
      (n): Choice<ReservationRef> =>
        (world) =>
          pick(open(world), n),
    ),
  },
  {
    weight: 2,
    arbitrary: nth.map(
      (n): Choice<ReservationRef> =>
        (world) =>
          pick(all(world.model.reservations), n),
    ),
  },
  { weight: 1, arbitrary: fc.constant((): ReservationRef => "foreign") },
);

function open(world: World): number[] {
  return all(world.model.reservations).filter((r) => world.model.size(r).length > 0);
}

function all(list: readonly unknown[]): number[] {
  return [...list.keys()];
}

/** Ids that no pool issues: beyond every slot, fractional, negative, not a number. */
const strange = fc.constantFrom(2 ** 24 - 1, 2 ** 53 - 1, 2 ** 53, 1.5, -1, Number.NaN, Number.POSITIVE_INFINITY);

/** A copy with a reference to give back, or now and then any one ever allocated, or an id that no pool issued. */
export const copyChoice: fc.Arbitrary<Choice<CopyRef>> = fc.oneof(
  {
    weight: 12,
    arbitrary: nth.map(
      (n): Choice<CopyRef> =>
        (world) =>
          pick(world.releasable(), n),
    ),
  },
  {
    weight: 3,
    arbitrary: nth.map(
      (n): Choice<CopyRef> =>
        (world) =>
          pick(all(world.model.ids), n),
    ),
  },
  {
    weight: 1,
    arbitrary: strange.map(
      (raw): Choice<CopyRef> =>
        () => ({ raw }),
    ),
  },
);

/** A private copy, or now and then any. */
export const privateChoice: fc.Arbitrary<Choice<CopyRef>> = fc.oneof(
  {
    weight: 4,
    arbitrary: nth.map(
      (n): Choice<CopyRef> =>
        (world) =>
          pick(privates(world), n),
    ),
  },
  { weight: 1, arbitrary: copyChoice },
);

export function copiesChoice(space: Space): fc.Arbitrary<Choice<readonly CopyRef[]>> {
  return listChoice(space, copyChoice, (world) => world.releasable());
}

export function privatesChoice(space: Space): fc.Arbitrary<Choice<readonly CopyRef[]>> {
  return listChoice(space, privateChoice, privates);
}

/** A few picked one by one, with repetitions, or a run of what there is. */
function listChoice(
  space: Space,
  one: fc.Arbitrary<Choice<CopyRef>>,
  list: (world: World) => number[],
): fc.Arbitrary<Choice<readonly CopyRef[]>> {
  const picks = fc.array(one, { maxLength: 4 }).map((choices): Choice<readonly CopyRef[]> => {
    return (world) => choices.map((choose) => choose(world)).filter((copy) => copy !== undefined);
  });
  const run = fc.tuple(nth, space.blocks).map(([from, count]): Choice<readonly CopyRef[]> => {
    return (world) => someOf(list(world), from, count);
  });
  return fc.oneof(picks, run);
}

function privates(world: World): number[] {
  return world.releasable().filter((copy) => world.model.pool.isPrivate(world.model.id(copy)));
}
