// The only description of what the core exports. tests/abi.test.ts holds it against the compiled module.

/** The raw exports of the core. Parameters and results are 32-bit integers but for ids, which are doubles. */
export interface CoreExports {
  readonly memory: WebAssembly.Memory;

  /** Opens the pool of the instance: once. */
  create(capacity: number, pagesMax: number): number;
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

  panicCode(): number;
  panicFile(): number;
  panicLine(): number;
}

/** What the checked build exports besides. */
export interface CheckedExports extends CoreExports {
  verify(): void;
  refuseGrowth(k: number): void;
}
