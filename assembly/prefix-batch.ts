import { Status, WORD_BYTES } from "../src/abi";
import { scratch } from "./layout";
import * as index from "./prefix-index";
import { expectWords, foundIndex, makeFor } from "./prefix-layout";
import { Entry, Holder, holderAt, isEntry, isNode, noEntry, records, used } from "./prefix-records";
import { entries, findEntry, findNode, nodes } from "./prefix-tables";

// The verbs of an index. Holders cross the border by number: the facade keeps the one that a holder's first store
// or limit returns. Only `storeBlocks`, `limitHolder` and `overlap` can meet a limit of memory, and say so before anything
// changes.

@inline function hashAt(position: i32): u64 {
  return load<u64>(scratch + <usize>position * WORD_BYTES);
}

/** Opens the index of this instance: once. `ttlMs` 0: blocks have no time to live. */
export function createIndex(entriesMax: u32, ownMax: u32, ttlMs: f64, pages: u32): i32 {
  const status = foundIndex(pages);
  if (status == Status.Ok) index.open(entriesMax, ownMax, ttlMs);
  return -status;
}

/**
 * Stores the blocks of the words behind the first, root first, under the parent in the first word if there is one. Keeps
 * the head of a chain that is longer than the bounds. A holder of number 0 is new, and `slot` is its number on the other
 * side. Returns the number of the holder.
 */
export function storeBlocks(number: u32, slot: u32, length: i32, hasParent: i32, nowMs: f64): i32 {
  expectWords(length + 1);
  const isNew = u32(number == 0);
  const status = makeStored(number, length);
  if (status != Status.Ok) return -status;
  index.pass(nowMs);
  const holder = holderOf(number, slot);
  storeChain(holder, length, hasParent != 0);
  return <i32>holder.number;
}

/** The holder of a number, or a new one, for which there is a record, where it is 0. */
export function holderOf(number: u32, slot: u32): Holder {
  return number == 0 ? index.register(slot) : holderAt(number);
}

// Makes room for a store, or changes nothing. What is there already is looked for only where the records would not do
// if all were new.
function makeStored(number: u32, length: i32): Status {
  const most = min(<u32>length, number == 0 ? index.ownMax : holderAt(number).limit) << 1;
  return makeFor(number, used() + most < records ? most : min(most, countMissing(number, length)));
}

// Counts the nodes and entries that a store would create if the bounds let it.
function countMissing(number: u32, length: i32): u32 {
  let missing: u32 = 0;
  for (let position = 1; position <= length; position++) {
    const node = findNode(hashAt(position));
    if (!isNode(node)) missing += 2;
    else missing += u32(number == 0 || !isEntry(findEntry(node, holderAt(number))));
  }
  return missing;
}

function storeChain(holder: Holder, length: i32, hasParent: bool): void {
  let anchor = noEntry();
  if (hasParent) anchor = index.begin(holder, hashAt(0));
  else index.beginAtRoot();
  let parent = hashAt(hasParent ? 0 : 1);
  for (let position = 1; position <= length; position++) {
    const hash = hashAt(position);
    const entry = index.hold(holder, hash, parent, anchor);
    if (!isEntry(entry)) return;
    anchor = entry;
    parent = hash;
  }
}

/** Removes blocks of a holder; those that it does not have are passed over. */
export function removeBlocks(number: u32, length: i32): void {
  expectWords(length);
  const holder = holderAt(number);
  for (let position = 0; position < length; position++) {
    const entry: Entry = index.entryOf(hashAt(position), holder);
    if (isEntry(entry)) index.drop(entry);
  }
}

/** Limits the entries of a holder, which is new where its number is 0. Returns its number. */
export function limitHolder(number: u32, slot: u32, most: u32): i32 {
  const status = makeFor(number, 0);
  if (status != Status.Ok) return -status;
  const holder = holderOf(number, slot);
  index.limit(holder, most);
  return <i32>holder.number;
}

/** Removes all blocks of a holder. */
export function clearHolder(number: u32): void {
  index.clear(holderAt(number));
}

/** Removes a holder with all its blocks; its number may be given to another. */
export function removeHolder(number: u32): void {
  const holder = holderAt(number);
  index.clear(holder);
  index.unregister(holder);
}

/** Counts the blocks that somebody holds. */
export function numBlocks(): u32 {
  return nodes;
}

/** Counts the (block, holder) pairs. */
export function numEntries(): u32 {
  return entries;
}

/** Counts the entries that went because the index or their holder was full. */
export function numEvicted(): f64 {
  return index.evicted;
}

/** Counts the entries that went because their time had come. */
export function numExpired(): f64 {
  return index.expired;
}
