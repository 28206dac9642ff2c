import { Status } from "../src/abi";
import { booked, bookedEntry } from "./booked-records";
import * as index from "./prefix-index";
import { makeRecords } from "./prefix-layout";
import { linkBefore } from "./prefix-order";
import { Entry, Holder, isEntry, isNode, noEntry } from "./prefix-records";
import { entries, findNode } from "./prefix-tables";

// What happens to one block where bookings are counted. The loops over batches are in booked-batch.ts.

/** The records that a block which is new to its holder may take: its own and its entry. */
@inline const RECORDS_PER_BLOCK: u32 = 2;

/**
 * Changes the references of a block on a holder by one, up or down, and by `waits` how many of them wait; or says why not
 * and changes nothing. A block is on its holder for as long as it has a reference.
 */
export function refer(holder: Holder, hash: u64, references: i32, waits: i32): Status {
  let entry = index.entryOf(hash, holder);
  if (!isEntry(entry)) {
    if (references < 0) return Status.NotBooked;
    const status = makeBlock();
    if (status != Status.Ok) return status;
    entry = open(holder, hash);
  }
  const node = booked(entry.node);
  const left = node.references + references;
  const waiting = node.waiting + waits; // below zero it is above all that is left
  if (waiting > left) return Status.NotBooked;
  node.references = left;
  node.waiting = waiting;
  const own = bookedEntry(entry).references + references;
  bookedEntry(entry).references = own;
  if (own == 0) index.drop(entry);
  return Status.Ok;
}

// Makes room for a block that is new to a holder, or changes nothing.
function makeBlock(): Status {
  if (entries >= index.entriesMax) return Status.BlocksExhausted;
  return makeRecords(RECORDS_PER_BLOCK, index.recordsEnough(index.holders));
}

// Puts a block that is new to a holder on it, without a reference as yet.
function open(holder: Holder, hash: u64): Entry {
  const entry = index.create(holder, hash);
  linkBefore(entry, noEntry());
  bookedEntry(entry).references = 0;
  if (entry.node.count > 1) return entry;
  booked(entry.node).waiting = 0;
  booked(entry.node).references = 0;
  return entry;
}

/** Changes by `waits` how many references of a block wait, on whatever holder; or says why not and changes nothing. */
export function settle(hash: u64, waits: i32): Status {
  const node = findNode(hash);
  if (!isNode(node)) return Status.NotBooked;
  const waiting = booked(node).waiting + waits;
  if (waiting > booked(node).references) return Status.NotBooked;
  booked(node).waiting = waiting;
  return Status.Ok;
}
