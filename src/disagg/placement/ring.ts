import { ArgumentTypeError, PlacementError } from "../../errors.js";
import { checkRank } from "../checks.js";

/** Ranks that a list of workers can hold. */
export const RANKS_MAX = 65_536;

/** Checks the ranks of a constructor: each once, and not too many. */
export function checkRanks(ranks: readonly number[]): void {
  if (!Array.isArray(ranks))
    throw new ArgumentTypeError(`Expected a list of ranks, got a value of type ${typeof ranks}.`);
  checkRoom(ranks.length);
  const seen = new Set<number>();
  for (const rank of ranks) {
    if (seen.has(checkRank(rank))) throw duplicateRank(rank);
    seen.add(rank);
  }
}

/** Checks that a list of so many ranks may be. */
export function checkRoom(ranks: number): void {
  if (ranks <= RANKS_MAX) return;
  throw new PlacementError("KVROUTE_TOO_MANY_RANKS", `Expected at most ${RANKS_MAX} ranks, got ${ranks}.`);
}

export function duplicateRank(rank: number): PlacementError {
  return new PlacementError("KVROUTE_DUPLICATE_RANK", `Expected every rank once, got ${rank} a second time.`);
}

export function unknownRank(rank: number): PlacementError {
  return new PlacementError("KVROUTE_UNKNOWN_RANK", `Expected the rank of a worker that was added, got ${rank}.`);
}

export function noWorkers(): PlacementError {
  return new PlacementError("KVROUTE_NO_WORKERS", "Expected a worker to choose from, but there is none at work.");
}

/** Members in the order in which they came, and the one whose turn it is. */
export class Ring<T> {
  readonly #members: T[];
  #turn = 0;

  constructor(members: Iterable<T>) {
    this.#members = [...members];
  }

  get size(): number {
    return this.#members.length;
  }

  /** The member that stands `steps` after the one whose turn it is; `steps` is below `size`. */
  at(steps: number): T {
    return this.#members[(this.#turn + steps) % this.#members.length] as T;
  }

  /** Gives the turn to the one that comes `steps` after the present one. */
  advance(steps: number): void {
    this.#turn = (this.#turn + steps) % this.#members.length;
  }

  /** Adds a member behind all others. */
  add(member: T): void {
    this.#members.push(member);
  }

  /** Takes a member out; the turn stays where it is, or goes on to the next. */
  delete(member: T): void {
    const index = this.#members.indexOf(member);
    if (index < 0) return;
    this.#members.splice(index, 1);
    if (index < this.#turn) this.#turn--;
    else if (this.#turn === this.#members.length) this.#turn = 0;
  }
}
