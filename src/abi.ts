// What both sides of the border agree on. The AssemblyScript compiler and tsc both read this file, so it holds
// nothing but enums and numbers, and it imports nothing.

/** Results of the core below zero are one of these, negated. */
export const enum Status {
  Ok = 0,
  /** There is not enough free and evictable room: an answer, not an error. */
  NoRoom = 1,
  /** A hash of the prefix has no resident copy. */
  MissingPrefix = 2,
  /** No live copy answers to the id. */
  UnknownCopy = 3,
  /** The copy has no reference left to release. */
  NotReferenced = 4,
  /** Only a private copy can enter the cache. */
  AlreadyCached = 5,
  /** A batch names a private copy twice. */
  DuplicateCopy = 6,
  /** References and pins together would pass REFERENCES_MAX. */
  ReferencesExhausted = 7,
  /** The instance would need more memory than its limit allows. */
  MemoryLimit = 8,
  /** The runtime refused to grow the memory. */
  GrowthRefused = 9,
  /** Every slot number has spent all its generations. */
  IdsExhausted = 10,
  /** A hash is not booked, or not as often as a batch says. */
  NotBooked = 11,
  /** A table of booked blocks is full. */
  BlocksExhausted = 12,
}

/** Why the core stopped. It never recovers: the facade gives the instance up. */
export const enum Panic {
  None = 0,
  /** An assertion failed; the line says which. */
  Assertion = 1,
  /** `verify` found a counter that does not match what it counts. */
  Counters = 2,
  /** `verify` found the list of inactive copies broken. */
  InactiveList = 3,
  /** `verify` found a hash, a bucket or an overflow count wrong in the index. */
  HashIndex = 4,
  /** `verify` found the chain of copies of a hash broken. */
  Copies = 5,
  /** `verify` found a slot in a state that it cannot be in. */
  Slots = 6,
  /** `verify` found regions of memory that overlap or leave a gap. */
  Layout = 7,
  /** `verifyIndex` found the free records wrong, or one that is lost. */
  Records = 8,
  /** `verifyIndex` found an order of use broken. */
  Order = 9,
  /** `verifyIndex` found a block or an entry that its table does not lead to. */
  Tables = 10,
  /** `verifyIndex` found the entries of a block at odds with what the block says. */
  Owners = 11,
  /** `verifyBooked` found counts of references that do not match. */
  References = 12,
}

/** A copy id is `generation * 2 ** SLOT_BITS + slot`: 53 bits in all, exact in a double. */
export const SLOT_BITS = 24;
export const GENERATION_BITS = 29;

/** Slot 0 is the sentinel of the inactive list, so a pool has one block less than there are slot numbers. */
export const CAPACITY_MAX = 16_777_215;

/** References and pins of a pool together: the greatest count that crosses the border as a signed 32-bit integer. */
export const REFERENCES_MAX = 2_147_483_647;

/** Where the slots start: behind the static data of the core, which ends before. */
export const ARENA = 4_096;

export const PAGE_BYTES = 65_536;
/** WebAssembly addresses 4 GiB. */
export const PAGES_MAX = 65_536;
/** The scratch page crosses in words of eight bytes: a hash or a copy id each. */
export const WORD_BYTES = 8;
/** The longest batch in words: at 2 GiB the scratch page alone would fill half the address space. */
export const BATCH_MAX = 16_777_216;
