// The only description of what the core exports. tests/abi.test.ts holds it against the compiled module.

/** The raw exports of the core. Parameters and results are 32-bit integers but for ids, which are doubles. */
export interface CoreExports {
  readonly memory: WebAssembly.Memory;

  /** Opens the pool of the instance: once. */
  create(capacity: number, pagesMax: number): number;
  /** Mixes up to 29 bits into the ids of a new pool. */
  seal(bits: number): void;
  scratchAddress(): number;
  scratchWords(): number;
  /** Counts the changes of the two. */
  layoutCount(): number;
  makeScratch(words: number): number;
  pagesWanted(): number;
  /** The second result of the last verb: the position of a refused word, or a second count. */
  detail(): number;

  numActive(): number;
  numReferences(): number;
  numInactive(): number;

  match(length: number): number;
  reserve(length: number, fresh: number): number;
  reserveResident(length: number, total: number): number;
  activate(length: number): void;
  cancel(length: number, fresh: number): void;
  allocatePrivate(length: number): void;
  allocateCached(length: number): number;
  cache(length: number): number;
  release(length: number, backwards: number): number;
  listInactive(afterId: number, most: number): number;

  /** Opens the prefix index of the instance: once, and instead of a pool. */
  createIndex(entriesMax: number, ownMax: number, ttlMs: number, pagesMax: number): number;
  /** Returns the number of the holder, which is new where it was 0. */
  storeBlocks(holder: number, slot: number, length: number, hasParent: number, nowMs: number): number;
  removeBlocks(holder: number, length: number): void;
  /** Limits the entries of a holder. Returns its number, which is new where it was 0. */
  limitHolder(holder: number, slot: number, most: number): number;
  clearHolder(holder: number): void;
  removeHolder(holder: number): void;
  /** Leaves pairs of 32 bits, slot and blocks, behind the hashes, and counts them. */
  overlap(length: number, nowMs: number): number;
  numBlocks(): number;
  numEntries(): number;
  numEvicted(): number;
  numExpired(): number;

  /**
   * Adds references of a holder in an instance that `createIndex` opened for booked blocks, or takes them. Counts the
   * blocks that came or went; leaves the number of the holder in the first word, or the position that was refused.
   */
  book(holder: number, slot: number, length: number, references: number, waits: number): number;
  settleAll(length: number, waits: number): number;
  countSole(holder: number, length: number): number;
  /** Leaves pairs of 32 bits, slot and blocks, behind the hashes, and the hot blocks in the first word. */
  potential(length: number, hot: number): number;

  /** The address of the words of an instance that hashes: seed, parent, local hashes, sequence hashes. */
  hashWords(): number;
  /** How many blocks may cross at once. */
  hashBlocksMax(): number;
  hashWindow(): number;
  hashWindowBytes(): number;
  hashBlocks(count: number, bytes: number, chained: number): void;
  hashPart(first: number): void;
  hashEnd(bytes: number): void;

  panicCode(): number;
  panicFile(): number;
  panicLine(): number;
}

/** What the checked build exports besides. */
export interface CheckedExports extends CoreExports {
  verify(): void;
  verifyBooked(): void;
  verifyIndex(): void;
  refuseGrowth(k: number): void;
}
