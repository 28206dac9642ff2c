import { Panic, WORD_BYTES } from "../src/abi";
import { scratch, words } from "./layout";
import { panic } from "./panic";
import * as index from "./prefix-index";
import { newerThan, oldest, oldestOf, sentinel } from "./prefix-order";
import {
  Entry,
  Holder,
  Node,
  RECORDS_STEP,
  RECORD_BYTES,
  freed,
  isEntry,
  noEntry,
  records,
  recycled,
  untouched,
  used,
} from "./prefix-records";
import { entries, entryDistance, findEntry, findNode, nodeDistance, nodes, passes, tablesBytes } from "./prefix-tables";
import { ARENA } from "./slots";

@inline export function hold(law: bool, reason: Panic): void {
  if (!law) panic(reason);
}

/** Walks everything that the index keeps and stops the core where two of its accounts disagree. */
export function verifyIndex(): void {
  verifyRecords();
  verifyStamps();
}

/** Does as `verifyIndex`, but for the ages of entries. */
export function verifyRecords(): void {
  verifyLayout();
  verifyFree();
  verifyOrder();
  verifyHolders();
}

// Stamps never fall, and none is of the future.
function verifyStamps(): void {
  let last: f64 = 0;
  for (let entry = newerThan(sentinel()); isEntry(entry); entry = newerThan(entry)) {
    hold(entry.stamp >= last && entry.stamp <= index.clock, Panic.Order);
    last = entry.stamp;
  }
}

function verifyLayout(): void {
  hold(scratch == ARENA + <usize>records * RECORD_BYTES + tablesBytes(records), Panic.Layout);
  hold(<u64>scratch + <u64>words * WORD_BYTES <= (<u64>memory.size()) << 16, Panic.Layout);
  hold(untouched >= 1 && untouched <= records && records % RECORDS_STEP == 0, Panic.Layout);
  hold(used() == 1 + nodes + entries + index.holders, Panic.Counters); // no record is lost
  hold(entries <= index.entriesMax && nodes <= entries, Panic.Counters);
}

function verifyFree(): void {
  let count: u32 = 0;
  for (let record = freed; record != 0; record = load<usize>(record)) {
    hold(++count <= recycled, Panic.Records); // neither a ring nor a stranger
    hold((record - ARENA) % RECORD_BYTES == 0 && record < ARENA + <usize>untouched * RECORD_BYTES, Panic.Records);
  }
  hold(count == recycled, Panic.Records);
}

// Every entry stands in the order of use, and is found by its key; every node is found by its hash.
function verifyOrder(): void {
  let count: u32 = 0;
  let blocks: u32 = 0;
  let distance: u32 = 0;
  let before = sentinel();
  for (let entry = newerThan(sentinel()); isEntry(entry); entry = newerThan(entry)) {
    hold(++count <= entries, Panic.Order); // not a ring
    hold(entry.older == before, Panic.Order);
    hold(findEntry(entry.node, entry.holder) == entry && findNode(entry.node.hash) == entry.node, Panic.Tables);
    distance += entryDistance(entry);
    before = entry;
    if (entry.node.first != entry) continue;
    blocks++;
    distance += nodeDistance(entry.node);
    verifyNode(entry.node);
  }
  hold(sentinel().older == before, Panic.Order);
  hold(count == entries && blocks == nodes, Panic.Counters);
  hold(distance == passes(), Panic.Tables);
}

function verifyNode(node: Node): void {
  let count: u32 = 0;
  let signature: u64 = 0;
  let previous = noEntry();
  for (let entry = node.first; isEntry(entry); entry = entry.following) {
    hold(++count <= node.count && entry.node == node && entry.previous == previous, Panic.Owners);
    signature += entry.holder.word;
    previous = entry;
  }
  hold(count == node.count && signature == node.signature, Panic.Owners);
}

// The order of each holder is that of all entries, without those of others. While all entries are walked, the mark of a
// holder, which means something only during an overlap, keeps its entry that came last.
function verifyHolders(): void {
  for (let entry = oldest(); entry != sentinel(); entry = entry.newer) keepLast(entry.holder, changetype<Entry>(entry.holder));
  for (let entry = oldest(); entry != sentinel(); entry = entry.newer) {
    const last = lastOf(entry.holder);
    hold(entry.olderOwn == last && last.newerOwn == entry, Panic.Order);
    keepLast(entry.holder, entry);
  }
  let sum: u32 = 0;
  for (let entry = oldest(); entry != sentinel(); entry = entry.newer) {
    if (oldestOf(entry.holder) == entry) sum += verifyOwn(entry.holder);
  }
  hold(sum == entries, Panic.Counters);
}

@inline function lastOf(holder: Holder): Entry {
  return changetype<Entry>(<usize>holder.mark);
}

@inline function keepLast(holder: Holder, entry: Entry): void {
  holder.mark = changetype<usize>(entry);
}

function verifyOwn(holder: Holder): u32 {
  let count: u32 = 0;
  let entry = holder.oldestOwn;
  for (; changetype<usize>(entry) != changetype<usize>(holder); entry = entry.newerOwn) {
    hold(++count <= holder.entries && entry.holder == holder, Panic.Order);
  }
  hold(holder.newestOwn == lastOf(holder), Panic.Order);
  hold(count == holder.entries && count <= holder.limit && holder.limit <= index.ownMax, Panic.Counters);
  holder.mark = 0;
  return count;
}
