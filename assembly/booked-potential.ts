import { Status, WORD_BYTES } from "../src/abi";
import { booked } from "./booked-records";
import { makeWords, scratch } from "./layout";
import { holders } from "./prefix-index";
import { expectWords } from "./prefix-layout";
import { Holder, Node, isEntry, isNode } from "./prefix-records";
import { findNode } from "./prefix-tables";

// How many blocks of a list each holder has active. Blocks that follow each other mostly have the same holders, and their
// signatures tell that in one comparison: a run of them is counted at once. The mark of a holder is its count during a
// call, and 0 between calls; who gets his first block is listed behind the hashes.

@inline function endAt(position: i32): usize {
  return scratch + <usize>position * WORD_BYTES;
}

/**
 * Counts the active blocks of the hashes in the first `length` words by holder. Leaves pairs of 32 bits, slot and blocks,
 * behind those words, in no order that means anything, and in the first word how many leading hashes at least `hot`
 * bookings wait for. Returns the number of pairs.
 */
export function potential(length: i32, hot: f64): i32 {
  expectWords(length);
  const status = makeWords(<usize>length + <usize>holders);
  if (status != Status.Ok) return -status;
  let free = endAt(length);
  let before = changetype<Node>(0);
  let run: u64 = 0;
  let hotBlocks = 0;
  for (let position = 0; position < length; position++) {
    const node = findNode(load<u64>(endAt(position)));
    if (!isNode(node)) continue;
    if (hotBlocks == position && <f64>booked(node).waiting >= hot) hotBlocks++;
    if (run == 0 || node.count != before.count || node.signature != before.signature) {
      if (run > 0) free = count(before, run, free);
      before = node;
      run = 0;
    }
    run++;
  }
  if (run > 0) free = count(before, run, free);
  store<i32>(scratch, hotBlocks);
  return list(endAt(length), free);
}

// Counts a run of blocks for all who hold the last of them. Returns the end of the list of those who hold anything.
function count(node: Node, run: u64, end: usize): usize {
  let free = end;
  for (let entry = node.first; isEntry(entry); entry = entry.following) {
    const holder = entry.holder;
    if (holder.mark == 0) {
      store<Holder>(free, holder);
      free += WORD_BYTES;
    }
    holder.mark += run;
  }
  return free;
}

// Puts pairs in the place of the listed holders, and counts them.
function list(start: usize, end: usize): i32 {
  for (let pair = start; pair < end; pair += WORD_BYTES) {
    const holder = load<Holder>(pair);
    store<u32>(pair, holder.slot);
    store<u32>(pair, <u32>holder.mark, 4);
    holder.mark = 0;
  }
  return <i32>((end - start) / WORD_BYTES);
}
