import { ARENA } from "./slots";

// The index keeps three kinds of record, all of 40 bytes, in one arena with one free list: so it never has room for the
// one kind and none for the other, and whatever comes and goes, the memory serves it again. A table of booked blocks
// keeps the same records, and says in booked-records.ts which of their fields mean something else there.
//
// A node is a block that somebody holds.
//
//   0        8          16            24      28      32     40
//   ├─ hash ─┼─ parent ─┼─ signature ─┼ first ┼ count ┼──────┤
//
// parent: the hash of the block before, or the node's own hash where there is none. A hash and no address, as the parent
//   may go before its child and come again.
// signature: the sum of a random word of each of its holders. Two blocks of equal count and signature have the same holders.
// first, count: the entries of the node.
//
// An entry says that a holder has a block.
//
//   0        4      8          12         16           20           24      28      32      40
//   ├ holder ┼ node ┼ previous ┼ following┼ olderOwn   ┼ newerOwn   ┼ older ┼ newer ┼ stamp ┤
//
// holder, node: together the key of 64 bits under which the entry is found.
// previous, following: neighbours among the entries of the node, null at the ends.
// olderOwn, newerOwn: neighbours in the order of use of the holder; older, newer: in that of all entries.
// stamp: when the entry was last used: milliseconds where blocks have a time to live, else a count of uses.
//
// A holder is one scheduler of a worker, by its number a (worker, dp rank).
//
//   0        8      16         20         24        28      32         40
//   ├ serial ┼ mark ┼ newestOwn┼ oldestOwn┼ entries ┼ limit ┼ orphaned ┤
//
// serial: its place in the order of registration, in 48 bits, over its number on the other side of the border, its slot.
// mark: where the last overlap that saw it lost it; grows over all calls.
// newestOwn, oldestOwn: the ends of its order of use. They stand where an entry has the links of that order, so that the
//   holder is the sentinel of its list: the newest entry is older than the holder, the oldest is newer.
// limit: how many entries it may keep.
// orphaned: the time, as of stamps, when it last used a block without using its parent, which it did not have; or -1.
@unmanaged export class Node {
  hash: u64;
  parent: u64;
  signature: u64;
  first: Entry;
  count: u32;
  spare: u64;
}

@unmanaged export class Entry {
  holder: Holder;
  node: Node;
  previous: Entry;
  following: Entry;
  olderOwn: Entry;
  newerOwn: Entry;
  older: Entry;
  newer: Entry;
  stamp: f64;
}

@unmanaged export class Holder {
  serial: u64;
  mark: u64;
  newestOwn: Entry;
  oldestOwn: Entry;
  entries: u32;
  limit: u32;
  orphaned: f64;

  @inline get slot(): u32 { return <u32>this.serial & SLOT_MASK; }

  @inline get number(): u32 { return <u32>((changetype<usize>(this) - ARENA) / RECORD_BYTES); }

  /**
   * Its share in the signatures: the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
   * generators, 2014), so that the sums of two sets of holders do not coincide.
   */
  get word(): u64 {
    let word = this.serial * 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
  }
}

@inline export const RECORD_BYTES: usize = 40;
/** A slot takes the lower bits of a serial. */
@inline export const SLOT_BITS: u64 = 16;
@inline export const SLOT_MASK: u32 = (1 << <u32>SLOT_BITS) - 1;
/** Records are as many as fill whole cache lines, so that what follows them starts on one. */
@inline export const RECORDS_STEP: u32 = 8;
if (offsetof<Node>() != RECORD_BYTES) ERROR("A node is a record");
if (offsetof<Entry>() != RECORD_BYTES) ERROR("An entry is a record");
if (offsetof<Holder>() != RECORD_BYTES) ERROR("A holder is a record");
if (offsetof<Holder>("newestOwn") != offsetof<Entry>("olderOwn")) ERROR("A holder is the sentinel of its list");
if (offsetof<Holder>("oldestOwn") != offsetof<Entry>("newerOwn")) ERROR("A holder is the sentinel of its list");

/** How many records the arena has room for. Record 0 is the sentinel of the order of use of all entries. */
export let records: u32 = 0;
/** Records from this number on have never been used. */
export let untouched: u32 = 1;
/** How many used records are free again. */
export let recycled: u32 = 0;
/** The record that was freed last; free records chain through their first field. */
export let freed: usize = 0;

/** No entry. */
@inline export function noEntry(): Entry {
  return changetype<Entry>(0);
}

/** Tells whether there is an entry. */
@inline export function isEntry(entry: Entry): bool {
  return changetype<usize>(entry) != 0;
}

/** Tells whether there is a node. */
@inline export function isNode(node: Node): bool {
  return changetype<usize>(node) != 0;
}

/** The holder of a number that the index gave out. */
@inline export function holderAt(number: u32): Holder {
  assert(number > 0 && number < untouched); // the facade keeps the numbers and tells them to nobody
  return changetype<Holder>(ARENA + <usize>number * RECORD_BYTES);
}

/** Lengthens the arena. The memory behind it is not clean: a record is written when it is taken. */
export function lengthen(length: u32): void {
  assert(length >= records); // a record in use is never lost
  records = length;
}

/** Counts the records in use, the sentinel with them. */
@inline export function used(): u32 {
  return untouched - recycled;
}

/** Takes a free record: the one freed last, whose cache line is still warm. */
export function take(): usize {
  const record = freed;
  if (record == 0) {
    assert(untouched < records); // the call has made room before it changed anything
    return ARENA + <usize>(untouched++) * RECORD_BYTES;
  }
  freed = load<usize>(record);
  recycled--;
  return record;
}

/** Frees a record. */
export function give(record: usize): void {
  store<usize>(record, freed);
  freed = record;
  recycled++;
}
