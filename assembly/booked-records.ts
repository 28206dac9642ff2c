import { Entry, Node, RECORD_BYTES } from "./prefix-records";

// A table of booked blocks keeps the records, tables and orders of the prefix index. Nothing is evicted there: the orders
// serve to find all entries when the memory grows. Blocks have no parents and entries no age, so that their places are
// free for counts. All counts have 64 bits: no number of bookings passes them.
//
// A block:
//
//   0        8           16            24      28      32           40
//   ├─ hash ─┼─ waiting ─┼─ signature ─┼ first ┼ count ┼ references ┤
//
// waiting: how many of its references are of bookings whose prefill has not ended.
// references: those of all its entries.
//
// An entry says that bookings put a block on a holder:
//
//   0                                                      32           40
//   ├ holder, node, neighbours as in the prefix index      ┼ references ┤
@unmanaged export class BookedNode {
  hash: u64;
  waiting: u64;
  signature: u64;
  first: Entry;
  count: u32;
  references: u64;
}

@unmanaged export class BookedEntry {
  holderAndNode: u64;
  neighbours: u64;
  neighboursOwn: u64;
  neighboursAll: u64;
  references: u64;
}

if (offsetof<BookedNode>() != RECORD_BYTES) ERROR("A booked node is a record");
if (offsetof<BookedNode>("signature") != offsetof<Node>("signature")) ERROR("A booked node is a node");
if (offsetof<BookedNode>("first") != offsetof<Node>("first")) ERROR("A booked node is a node");
if (offsetof<BookedNode>("count") != offsetof<Node>("count")) ERROR("A booked node is a node");
if (offsetof<BookedEntry>() != RECORD_BYTES) ERROR("A booked entry is a record");
if (offsetof<BookedEntry>("references") != offsetof<Entry>("stamp")) ERROR("A booked entry is an entry");

/** A node of a table of booked blocks as what it is. */
@inline export function booked(node: Node): BookedNode {
  return changetype<BookedNode>(node);
}

/** An entry of a table of booked blocks as what it is. */
@inline export function bookedEntry(entry: Entry): BookedEntry {
  return changetype<BookedEntry>(entry);
}
