import type { BlockCopyId, CopyIds, Hashes, SequenceHash } from "../../src/core/keys.js";

/** What a reservation shows to everybody. */
export interface ReservationUnderTest {
  readonly length: number;
  readonly freshLength: number;
  [Symbol.dispose](): void;
}

export interface ReserveOutcomeUnderTest {
  readonly reservation: ReservationUnderTest;
  readonly removed: BigUint64Array;
}

/** The public methods of BlockPool, so that the real pool, the naive one and deliberately wrong ones run the same suites. */
export interface PoolUnderTest {
  readonly capacity: number;
  readonly numActive: number;
  readonly numActiveRefs: number;
  readonly numInactive: number;
  prefixHit(hash: SequenceHash): { isActive: boolean } | null;
  matchPrefix(hashes: Hashes): { resident: number; active: number };
  reserve(prefix: Hashes, fresh: number): ReserveOutcomeUnderTest | null;
  reserveResidentPrefix(candidates: Hashes, total: number): ReserveOutcomeUnderTest | null;
  activatePrefix(reservation: ReservationUnderTest): Float64Array;
  allocatePrivate(reservation: ReservationUnderTest): BlockCopyId;
  allocateCached(reservation: ReservationUnderTest, hash: SequenceHash): { id: BlockCopyId; becameVisible: boolean };
  cachePrivate(id: BlockCopyId, hash: SequenceHash): boolean;
  release(id: BlockCopyId): void;
  cancel(reservation: ReservationUnderTest): void;
  allocateAllPrivate(reservation: ReservationUnderTest): Float64Array;
  allocateAllCached(reservation: ReservationUnderTest, hashes: Hashes): { ids: Float64Array; visible: number };
  cacheAll(ids: CopyIds, hashes: Hashes): number;
  releaseAll(ids: CopyIds): void;
  releaseChain(ids: CopyIds): void;
  inactiveIds(): Float64Array;
  dispose(): void;
  [Symbol.dispose](): void;
}

export interface PoolOptions {
  readonly capacity: number;
  readonly maxMemoryBytes?: number;
}

/** A kind of pool that the suites can run on. */
export interface Subject<P extends PoolUnderTest = PoolUnderTest> {
  readonly name: string;
  create(options: PoolOptions): P;
  /** Checks the inner laws of the pool, where the build has such a check. */
  verify(pool: P): void;
}
