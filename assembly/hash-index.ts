import { add, distanceIn, emptyTable, lookUp, lookUpOrAddNear, passesIn, replace, tableBytes, takeOut } from "./hash-table";
import { Slot, some } from "./slots";

// The index of a pool: from a hash to the slot of its oldest copy, in a table of hash-table.ts.

let table: usize = 0;
let mask: usize = 0;
/** How many hashes have an entry. */
export let entries: u32 = 0;

@inline function address(slot: Slot): usize {
  return changetype<usize>(slot);
}

/** The bytes that an index for so many slots takes. */
export function indexBytes(slots: u32): usize {
  return tableBytes(slots);
}

/** Makes the index empty, at an address aligned to a cache line and of a size that `indexBytes` gave. */
export function placeIndex(at: usize, bytes: usize): void {
  table = at;
  mask = emptyTable(at, bytes);
  entries = 0;
}

/** The oldest copy of a hash, or nil. */
@inline export function find(hash: u64): Slot {
  return changetype<Slot>(lookUp(table, mask, hash));
}

/** The oldest copy of the hash of a copy; or nil, and then the hash has an entry now, which names the copy. */
@inline export function findOrInsert(slot: Slot): Slot {
  const oldest = changetype<Slot>(lookUpOrAddNear(table, mask, address(slot)));
  if (!some(oldest)) return findOrInsertFar(slot);
  if (oldest != slot) return oldest;
  entries++;
  return changetype<Slot>(0);
}

// The same where the entry may stand, or has to go, beyond its first bucket.
function findOrInsertFar(slot: Slot): Slot {
  const oldest = find(slot.hash);
  if (!some(oldest)) insert(slot);
  return oldest;
}

/** Adds the hash of a copy; it has no entry yet. */
export function insert(slot: Slot): void {
  add(table, mask, address(slot));
  entries++;
}

/** Removes the entry that names a copy. */
@inline export function erase(slot: Slot): void {
  takeOut(table, mask, address(slot));
  entries--;
}

/** Lets the entry that names a copy name another of the same hash. */
export function rename(from: Slot, to: Slot): void {
  replace(table, mask, address(from), address(to));
}

/** The sum of the passes of all buckets, for `verify`. */
export function passes(): u32 {
  return passesIn(table, mask);
}

/** How many buckets the entry that names a copy passed before it found a place, for `verify`. */
export function distanceOf(slot: Slot): u32 {
  return distanceIn(table, mask, address(slot));
}
