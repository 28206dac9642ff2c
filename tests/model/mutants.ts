import type { CopyIds, Hashes } from "../../src/core/keys.js";
import type { PoolOptions, ReservationUnderTest, Subject } from "../support/pool-under-test.js";
import { type Copy, NaivePool } from "./naive-pool.js";

type NaiveOutcome = ReturnType<NaivePool["reserve"]>;

// Pools that break one rule each.

class SwapRemove extends NaivePool {
  protected override without(chain: readonly Copy[], victim: Copy): Copy[] {
    const rest = [...chain];
    const last = rest.pop();
    const place = rest.indexOf(victim);
    if (place >= 0 && last !== undefined) rest[place] = last;
    return rest;
  }
}

class WholeChainGoes extends NaivePool {
  protected override without(): Copy[] {
    return [];
  }
}

class ForwardUnpin extends NaivePool {
  override cancel(reservation: ReservationUnderTest): void {
    const own = this.own(reservation);
    own.prefix.reverse();
    super.cancel(own);
  }
}

class LeakingCancel extends NaivePool {
  override cancel(reservation: ReservationUnderTest): void {
    const own = this.own(reservation);
    const { fresh } = own;
    super.cancel(own);
    if (own.closed) this.reserved += Math.max(0, fresh - 1);
  }
}

class PrependToInactive extends NaivePool {
  protected override settle(copy: Copy): void {
    if (!this.isActive(copy)) this.inactive = new Set([copy, ...this.inactive]);
  }
}

class EvictYoungest extends NaivePool {
  protected override evict(): bigint[] {
    this.inactive = new Set([...this.inactive].reverse());
    const removed = super.evict();
    this.inactive = new Set([...this.inactive].reverse());
    return removed;
  }
}

class SilentEvictionReported extends NaivePool {
  protected override evict(): bigint[] {
    const hash = [...this.inactive][0]?.hash ?? null;
    super.evict();
    return hash === null ? [] : [hash];
  }
}

class LastEvictionUnreported extends NaivePool {
  protected override evict(): bigint[] {
    super.evict();
    return [];
  }
}

class HidesRepeatsTwice extends NaivePool {
  protected override hidden(hits: readonly Copy[]): number {
    return Math.min(this.inactive.size, hits.filter((copy) => this.inactive.has(copy)).length);
  }
}

class HidesActiveHits extends NaivePool {
  protected override hidden(hits: readonly Copy[]): number {
    return Math.min(this.inactive.size, new Set(hits).size);
  }
}

class NewestIsFound extends NaivePool {
  protected override oldest(hash: bigint): Copy | undefined {
    return this.chains.get(hash)?.at(-1);
  }
}

class ActiveIsFoundFirst extends NaivePool {
  protected override oldest(hash: bigint): Copy | undefined {
    const chain = this.chains.get(hash);
    return chain?.find((copy) => this.isActive(copy)) ?? chain?.[0];
  }
}

class HashesAreDoubles extends NaivePool {
  protected override oldest(hash: bigint): Copy | undefined {
    for (const [known, [copy]] of this.chains) if (Number(known) === Number(hash)) return copy;
    return undefined;
  }
}

class HashesHave32Bits extends NaivePool {
  protected override oldest(hash: bigint): Copy | undefined {
    for (const [known, [copy]] of this.chains) if (BigInt.asUintN(32, known ^ hash) === 0n) return copy;
    return undefined;
  }
}

class PinsAreNotActive extends NaivePool {
  override prefixHit(hash: bigint): { isActive: boolean } | null {
    return super.prefixHit(hash) && { isActive: (this.oldest(hash)?.refs ?? 0) > 0 };
  }
}

class MatchCountsAll extends NaivePool {
  protected override residentRun(hashes: readonly bigint[]): Copy[] {
    return hashes.flatMap((hash) => this.oldest(hash) ?? []);
  }
}

class PinOncePerHash extends NaivePool {
  protected override pin(copy: Copy): void {
    if (copy.pins === 0) super.pin(copy);
  }

  protected override activate(copy: Copy): void {
    if (copy.pins > 0) super.activate(copy);
  }

  protected override unpin(copy: Copy): void {
    if (copy.pins > 0) super.unpin(copy);
  }
}

class ReleaseIgnoresPins extends NaivePool {
  override release(id: number): void {
    super.release(id);
    const copy = this.copies.get(id);
    if (copy !== undefined && copy.refs === 0) this.inactive.add(copy);
  }
}

class TouchKeepsItsPlace extends NaivePool {
  #places = new Map<Copy, number>();

  protected override pin(copy: Copy): void {
    if (this.inactive.has(copy)) this.#places.set(copy, [...this.inactive].indexOf(copy));
    super.pin(copy);
  }

  protected override unpin(copy: Copy): void {
    super.unpin(copy);
    const place = this.#places.get(copy);
    if (!this.inactive.delete(copy) || place === undefined)
      return void (this.isActive(copy) || this.inactive.add(copy));
    const others = [...this.inactive];
    this.inactive = new Set([...others.slice(0, place), copy, ...others.slice(place)]);
  }
}

class RefusalPins extends NaivePool {
  override reserve(prefix: Hashes, fresh: number): NaiveOutcome {
    const outcome = super.reserve(prefix, fresh);
    if (outcome === null) for (const hash of prefix) this.oldest(hash) && this.pin(this.oldest(hash) as Copy);
    return outcome;
  }
}

class RoomBeforeMissing extends NaivePool {
  override reserve(prefix: Hashes, fresh: number): NaiveOutcome {
    if (Number.isInteger(fresh) && fresh > this.capacity) return null;
    return super.reserve(prefix, fresh);
  }
}

class EvictsFreeRoomToo extends NaivePool {
  override reserve(prefix: Hashes, fresh: number): NaiveOutcome {
    const outcome = super.reserve(prefix, fresh);
    if (outcome === null || fresh === 0 || this.inactive.size === 0 || outcome.removed.length > 0) return outcome;
    return { ...outcome, removed: BigUint64Array.from(this.evict()) };
  }
}

class ResidentPrefixTakesTotal extends NaivePool {
  override reserveResidentPrefix(candidates: Hashes, total: number): NaiveOutcome {
    const outcome = super.reserveResidentPrefix(candidates, total);
    const pinned = outcome?.reservation.prefix.length ?? 0;
    if (outcome === null || this.free() < pinned) return outcome;
    outcome.reservation.fresh += pinned;
    this.reserved += pinned;
    return outcome;
  }
}

class SecondActivationRepeats extends NaivePool {
  #activated = new WeakMap<ReservationUnderTest, Float64Array>();

  override activatePrefix(reservation: ReservationUnderTest): Float64Array {
    const ids = super.activatePrefix(reservation);
    const before = this.#activated.get(reservation);
    this.#activated.set(reservation, ids);
    return before ?? ids;
  }
}

class EveryCopyBecomesVisible extends NaivePool {
  override cachePrivate(id: number, hash: bigint): boolean {
    super.cachePrivate(id, hash);
    return true;
  }
}

class ReusedIds extends NaivePool {
  #spare: number[] = [];

  override release(id: number): void {
    const wasPrivate = this.isPrivate(id);
    super.release(id);
    if (wasPrivate) this.#spare.push(id);
  }

  protected override newId(): number {
    return this.#spare.pop() ?? super.newId();
  }
}

class ReleaseAllIsNotAtomic extends NaivePool {
  protected override releaseInOrder(ids: readonly number[], order: readonly number[]): void {
    for (const index of order) this.release(ids[index] ?? Number.NaN);
  }
}

class CacheAllIsNotAtomic extends NaivePool {
  override cacheAll(ids: CopyIds, hashes: Hashes): number {
    return Array.from(ids).filter((id, index) => this.cachePrivate(id, hashes[index] ?? 0n)).length;
  }
}

class ChainIsReleasedForwards extends NaivePool {
  override releaseChain(ids: CopyIds): void {
    this.releaseAll(ids);
  }
}

class ReleaseAllIsReversed extends NaivePool {
  override releaseAll(ids: CopyIds): void {
    super.releaseChain(ids);
  }
}

class AllocateAllLeavesOne extends NaivePool {
  override allocateAllPrivate(reservation: ReservationUnderTest): Float64Array {
    const own = this.own(reservation);
    return Float64Array.from({ length: Math.max(0, own.fresh - 1) }, () => this.allocatePrivate(own));
  }
}

class ForeignReservationsWelcome extends NaivePool {
  override cancel(reservation: ReservationUnderTest): void {
    try {
      super.cancel(reservation);
    } catch {
      // Pretends that it worked.
    }
  }
}

class ReservedIsFree extends NaivePool {
  protected override free(): number {
    return this.capacity - this.copies.size;
  }
}

/** A pool that is wrong on purpose, and the suites that must see it. */
export interface Mutant {
  readonly subject: Subject<NaivePool>;
  readonly seenBy: readonly ("the recorded traces" | "the laws" | "the exhaustive test" | "random calls")[];
}

type PoolClass = new (options: PoolOptions) => NaivePool;

/** Rules of single calls: recorded in the traces, and met by every suite. */
const singles: PoolClass[] = [
  SwapRemove,
  WholeChainGoes,
  ForwardUnpin,
  LeakingCancel,
  PrependToInactive,
  EvictYoungest,
  SilentEvictionReported,
  LastEvictionUnreported,
  HidesRepeatsTwice,
  HidesActiveHits,
  NewestIsFound,
  ActiveIsFoundFirst,
  PinsAreNotActive,
  PinOncePerHash,
  TouchKeepsItsPlace,
  RefusalPins,
  EvictsFreeRoomToo,
  EveryCopyBecomesVisible,
  ForeignReservationsWelcome,
  ReservedIsFree,
];

/** Rules of single calls that show only after more calls, or with other hashes, than the exhaustive test has. */
const rare: PoolClass[] = [
  HashesAreDoubles,
  HashesHave32Bits,
  ReleaseIgnoresPins,
  RoomBeforeMissing,
  SecondActivationRepeats,
  ReusedIds,
];

/** Rules of verbs that the recorded pool does not have. */
const batches: PoolClass[] = [
  MatchCountsAll,
  ResidentPrefixTakesTotal,
  ReleaseAllIsNotAtomic,
  CacheAllIsNotAtomic,
  ChainIsReleasedForwards,
  ReleaseAllIsReversed,
  AllocateAllLeavesOne,
];

function mutant(seenBy: Mutant["seenBy"]): (Pool: PoolClass) => Mutant {
  return (Pool) => ({
    subject: { name: Pool.name, create: (options) => new Pool(options), verify: () => {} },
    seenBy,
  });
}

export const mutants: readonly Mutant[] = [
  ...singles.map(mutant(["the recorded traces", "the laws", "the exhaustive test", "random calls"])),
  ...rare.map(mutant(["the recorded traces", "the laws", "random calls"])),
  ...batches.map(mutant(["the laws", "random calls"])),
];
