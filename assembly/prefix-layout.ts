import { Status, WORD_BYTES } from "../src/abi";
import { limitPages, makePages, placeScratch, scratch, words } from "./layout";
import { holders, recordsEnough } from "./prefix-index";
import { newerThan, oldest, sentinel, clearOrder } from "./prefix-order";
import { Entry, RECORDS_STEP, RECORD_BYTES, isEntry, lengthen, noEntry, records, used } from "./prefix-records";
import { addEntry, addNode, placeTables, tablesBytes } from "./prefix-tables";
import { ARENA } from "./slots";

// Linear memory of an index, from its start:
//
//   ├─ static data ─┼─ records ──────────┼─ entries and nodes by key ─┼─ scratch ────┤ rest of the last page
//   0               ARENA                + records * 40               + tablesBytes  + words * 8
//
// Records never move, so links between them are addresses. When they grow, the tables behind them are built anew and the
// scratch page moves on with what it holds.

@inline const WORDS_MIN: usize = 256;
@inline const RECORDS_MIN: u32 = 256;

/** Lays out the memory of a new index. */
export function foundIndex(pages: u32): Status {
  assert(words == 0); // an instance holds one pool or one index
  assert(__heap_base <= ARENA); // static data ends before the records start
  limitPages(pages);
  const status = relayout(WORDS_MIN, RECORDS_MIN);
  if (status == Status.Ok) clearOrder();
  return status;
}

/** Makes room for `missing` more records, or changes nothing. Records double up to `enough`, the most there can ever be. */
export function makeRecords(missing: u32, enough: u32): Status {
  const needed = min(used() + missing, enough);
  if (needed <= records) return Status.Ok;
  return relayout(words, max(needed, min(records << 1, enough)));
}

/** Makes room for the holder of a number, if that is 0 and it is new, and for `missing` more records, or changes nothing. */
export function makeFor(number: u32, missing: u32): Status {
  const isNew = u32(number == 0);
  return makeRecords(missing + isNew, recordsEnough(holders + isNew));
}

/** Says how many words a verb will read: the facade has made room for them. */
export function expectWords(length: i32): void {
  assert(<usize>length <= words);
}

/** Grows the memory once and puts everything in its new place, or changes nothing. */
function relayout(newWords: usize, length: u32): Status {
  assert(newWords >= words && length >= records); // memory never shrinks
  const newRecords = (length + RECORDS_STEP - 1) & ~(RECORDS_STEP - 1);
  const tables = ARENA + <usize>newRecords * RECORD_BYTES;
  const page = tables + tablesBytes(newRecords);
  const status = makePages(<u64>page + <u64>newWords * WORD_BYTES);
  if (status != Status.Ok) return status;

  memory.copy(page, scratch, words * WORD_BYTES); // first: the new tables may lie where the page was
  const first = records == 0 ? noEntry() : newerThan(sentinel());
  placeTables(tables, newRecords);
  lengthen(newRecords);
  for (let entry = first; isEntry(entry); entry = newerThan(entry)) reinsert(entry);
  placeScratch(page, newWords);
  return Status.Ok;
}

function reinsert(entry: Entry): void {
  addEntry(entry);
  if (entry.node.first == entry) addNode(entry.node);
}
