import { scratch, words } from "../assembly/layout";
import { panic, panicCode } from "../assembly/panic";
import { createIndex, storeBlocks } from "../assembly/prefix-batch";
import { newerThan, sentinel } from "../assembly/prefix-order";
import { Entry, isEntry } from "../assembly/prefix-records";
import { verifyIndex } from "../assembly/prefix-verify";
import { ARENA } from "../assembly/slots";
import { PAGES_MAX, Panic, WORD_BYTES } from "../src/abi";

// What several specs of the prefix index need. A spec is one instance of the core and opens one index.

const HEAP_BYTES: usize = 8 << 20;

/** No parent, as a root's. */
export const NONE: u64 = u64.MAX_VALUE;

/** Opens the index of a spec. */
export function openIndex(entriesMax: u32, ownMax: u32, ttlMs: f64 = 0, pages: u32 = PAGES_MAX): i32 {
  // The heap of the test runner starts below the arena; taken once and freed, this much is its own.
  heap.free(heap.alloc(HEAP_BYTES));
  assert((<usize>memory.size()) << 16 <= ARENA || words > 0);
  return createIndex(entriesMax, ownMax, ttlMs, pages);
}

export function putHash(position: i32, hash: u64): void {
  store<u64>(scratch + <usize>position * WORD_BYTES, hash);
}

/** Stores blocks for a holder, 0 for a new one; returns its number. Slots are numbered like holders. */
export function storeAll(holder: u32, hashes: StaticArray<u64>, parent: u64 = NONE, nowMs: f64 = 0): i32 {
  putHash(0, parent);
  for (let position = 0; position < hashes.length; position++) putHash(position + 1, hashes[position]);
  return storeBlocks(holder, holder, hashes.length, i32(parent != NONE), nowMs);
}

/** Writes hashes to the first words of the scratch page and counts them. */
export function putHashes(hashes: StaticArray<u64>): i32 {
  for (let position = 0; position < hashes.length; position++) putHash(position, hashes[position]);
  return hashes.length;
}

/** The hashes of all entries in the order of use, longest ago first. */
export function order(): string {
  let list = "";
  for (let entry: Entry = newerThan(sentinel()); isEntry(entry); entry = newerThan(entry)) {
    list += `${list.length ? " " : ""}${entry.node.hash}`;
  }
  return list;
}

/** Expects that `verifyIndex` stops the core for a reason. */
export function expectFound(reason: Panic): void {
  expect(() => panic(Panic.None)).toThrow(); // forgets the last reason
  expect(() => verifyIndex()).toThrow("verifyIndex found nothing");
  expect(panicCode()).toBe(reason);
}
