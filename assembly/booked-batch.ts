import { Status, WORD_BYTES } from "../src/abi";
import { refer, settle } from "./booked-blocks";
import { bookedEntry } from "./booked-records";
import { scratch } from "./layout";
import { holderOf } from "./prefix-batch";
import * as index from "./prefix-index";
import { expectWords, makeFor } from "./prefix-layout";
import { Holder, holderAt, isEntry } from "./prefix-records";

// The verbs of a table of booked blocks, which is opened like a prefix index. A verb goes through its list once and does
// what it is asked; where it has to stop, it takes back what it has done, so that nothing has changed but, perhaps, the
// memory. A result below zero is a Status, negated, and the first word then holds the position that was refused.

@inline function hashAt(position: i32): u64 {
  return load<u64>(scratch + <usize>position * WORD_BYTES);
}

/**
 * Adds a reference for each hash to a holder, or takes one, and as many that wait as `waits` says: 1 and 1; or -1 and -1
 * or 0. A holder of number 0 is new, and `slot` is its number on the other side. Returns how many blocks have come or
 * gone, and leaves the number of the holder in the first word, or 0 where it has nothing left and is gone.
 */
export function book(number: u32, slot: u32, length: i32, references: i32, waits: i32): i32 {
  expectWords(length);
  const status = makeFor(number, 0);
  if (status != Status.Ok) return -status;
  const holder = holderOf(number, slot);
  const before = holder.entries;
  const result = referAll(holder, length, references, waits);
  const change = <i32>(holder.entries - before) * references;
  const isEmpty = holder.entries == 0;
  if (isEmpty) index.unregister(holder);
  if (result < 0) return result;
  store<u32>(scratch, isEmpty ? 0 : holder.number);
  return change;
}

// What is taken back was there a moment ago: nothing can refuse that.
function referAll(holder: Holder, length: i32, references: i32, waits: i32): i32 {
  for (let position = 0; position < length; position++) {
    const status = refer(holder, hashAt(position), references, waits);
    if (status == Status.Ok) continue;
    referAll(holder, position, -references, -waits);
    return refuse(status, position);
  }
  return Status.Ok;
}

/** Changes by `waits`, -1, how many wait for each hash. */
export function settleAll(length: i32, waits: i32): i32 {
  for (let position = 0; position < length; position++) {
    const status = settle(hashAt(position), waits);
    if (status == Status.Ok) continue;
    settleAll(position, -waits);
    return refuse(status, position);
  }
  return Status.Ok;
}

/** Counts the hashes that have one reference on a holder. */
export function countSole(number: u32, length: i32): i32 {
  const holder = holderAt(number);
  let sole = 0;
  for (let position = 0; position < length; position++) {
    const entry = index.entryOf(hashAt(position), holder);
    if (!isEntry(entry)) return refuse(Status.NotBooked, position);
    sole += i32(bookedEntry(entry).references == 1);
  }
  return sole;
}

function refuse(status: Status, position: i32): i32 {
  store<i32>(scratch, position);
  return -status;
}
