import { PAGES_MAX, PAGE_BYTES, Status, WORD_BYTES } from "../src/abi";
import { isOldest } from "./copies";
import { indexBytes, insert, placeIndex } from "./hash-index";
import { clear } from "./lru";
import { ACTIVE, ARENA, INACTIVE, SLOT_BYTES, SLOT_NUMBERS, at, lengthen, slots, untouched } from "./slots";

// Linear memory, from its start:
//
//   ├─ static data ─┼─ slots ──────────┼─ index ────────┼─ scratch ────┤ rest of the last page
//   0               ARENA              + slots * 32     + indexBytes   + words * 8
//
// Slots never move, so links between them are addresses. When they grow, the index behind them is built anew
// and the scratch page moves on with what it holds; when only the scratch page grows, nothing moves.

@inline const WORDS_MIN: usize = 256;
@inline const SLOTS_MIN: u32 = 256;

/** Where hashes and copy ids cross the border. */
export let scratch: usize = 0;
/** The length of the scratch page in words. */
export let words: usize = 0;
/** Counts the changes of `scratch` and `words`, so that the facade knows when to look. */
export let layouts: u32 = 0;

let pagesMax: u32 = 0;
let wanted: u32 = 0;
// Growths until the runtime refuses one, in checked builds; 0 while none is to be refused.
let growthsLeft: i32 = 0;

/** Lays out the memory of a new pool. */
export function found(capacity: u32, pages: u32): Status {
  assert(words == 0); // an instance holds one pool or one index
  assert(__heap_base <= ARENA); // static data ends before the slots start
  limitPages(pages);
  const status = relayout(WORDS_MIN, min(SLOTS_MIN, pairs(capacity + 1)));
  if (status == Status.Ok) clear();
  return status;
}

/** Bounds the memory of a new instance. */
export function limitPages(pages: u32): void {
  assert(pages <= <u32>PAGES_MAX); // the facade checks what users pass
  pagesMax = pages;
}

/** Makes room for a batch of so many words, or changes nothing. The page is the last thing in memory: it grows in place. */
export function makeWords(needed: usize): Status {
  if (needed <= words) return Status.Ok;
  const newWords = wordsFor(needed);
  const status = makePages(<u64>scratch + <u64>newWords * WORD_BYTES);
  if (status == Status.Ok) placeScratch(scratch, newWords);
  return status;
}

/**
 * Makes room for a batch of `needed` words and for `missing` more slots, or changes nothing. Slots double up to
 * `enough`, and beyond it only as far as they must.
 */
export function makeRoom(needed: usize, missing: u32, enough: u32): Status {
  if (missing == 0) return makeWords(needed);
  if (missing > SLOT_NUMBERS - slots) return Status.IdsExhausted;
  const newSlots = max(slots + missing, min(slots << 1, enough));
  return relayout(wordsFor(needed), min(pairs(newSlots), SLOT_NUMBERS));
}

/** The length that the scratch page grows to for a batch of so many words. */
@inline export function wordsFor(needed: usize): usize {
  return needed <= words ? words : max(needed, words << 1);
}

// Slots come in pairs: two fill a cache line, and the index behind them starts on one.
@inline function pairs(count: u32): u32 {
  return (count + 1) & ~1;
}

/** Grows the memory once and puts everything in its new place, or changes nothing. */
function relayout(newWords: usize, newSlots: u32): Status {
  assert(newWords >= words && newSlots >= slots); // memory never shrinks
  const index = ARENA + <usize>newSlots * SLOT_BYTES;
  const size = indexBytes(newSlots);
  const page = index + size;
  const status = makePages(<u64>page + <u64>newWords * WORD_BYTES);
  if (status != Status.Ok) return status;

  memory.copy(page, scratch, words * WORD_BYTES); // first: the new index may lie where the page was
  placeIndex(index, size);
  lengthen(newSlots);
  reinsert();
  placeScratch(page, newWords);
  return Status.Ok;
}

/** Says where the scratch page is from now on, in memory that is there. */
export function placeScratch(page: usize, newWords: usize): void {
  scratch = page;
  words = newWords;
  layouts++;
}

/** Makes the memory hold so many bytes, or changes nothing. The only place that grows it. */
export function makePages(bytes: u64): Status {
  const pages = (bytes + (PAGE_BYTES - 1)) / PAGE_BYTES;
  const missing = <i64>pages - <i64>memory.size();
  wanted = <u32>pages;
  if (pages > <u64>pagesMax) return Status.MemoryLimit;
  if (missing <= 0) return Status.Ok;
  // @ts-ignore: defined by --use
  if (isDefined(CORE_VERIFY) && growthsLeft > 0 && --growthsLeft == 0) return Status.GrowthRefused;
  return memory.grow(<i32>missing) < 0 ? Status.GrowthRefused : Status.Ok;
}

/** Reads how many pages the last layout asked for, granted or not. */
export function pagesWanted(): u32 {
  return wanted;
}

function reinsert(): void {
  for (let number: u32 = 1; number < untouched; number++) {
    const slot = at(number);
    if ((slot.state == ACTIVE || slot.state == INACTIVE) && isOldest(slot)) insert(slot);
  }
}

/** Lets the runtime refuse the k-th growth from now on; 0 lets it refuse none. Checked builds only. */
export function refuseGrowth(k: i32): void {
  growthsLeft = k;
}
