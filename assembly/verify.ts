import { Panic, WORD_BYTES } from "../src/abi";
import { isOldest } from "./copies";
import { distanceOf, entries, find, indexBytes, passes } from "./hash-index";
import { scratch, words } from "./layout";
import { inactive, sentinel } from "./lru";
import { panic } from "./panic";
import * as pool from "./pool";
import {
  ACTIVE,
  ARENA,
  FREE,
  GENERATION_BITS,
  INACTIVE,
  PRIVATE,
  SLOT_BYTES,
  Slot,
  at,
  expiring,
  freed,
  recycled,
  retired,
  slots,
  some,
  untouched,
  vacant,
} from "./slots";

@inline const SPENT: u32 = 1 << GENERATION_BITS;

@inline function hold(law: bool, reason: Panic): void {
  if (!law) panic(reason);
}

/** Walks everything that the pool keeps and stops the core where two of its accounts disagree. */
export function verify(): void {
  verifyLayout();
  verifySlots();
  verifyFree();
  verifyInactive();
  verifyIndex();
}

function verifyLayout(): void {
  hold(scratch == ARENA + <usize>slots * SLOT_BYTES + indexBytes(slots), Panic.Layout);
  hold(<u64>scratch + <u64>words * WORD_BYTES <= (<u64>memory.size()) << 16, Panic.Layout);
  hold(untouched >= 1 && untouched <= slots, Panic.Layout);
}

// What the slots say, counted anew.
function verifySlots(): void {
  let privates: u32 = 0;
  let idle: u32 = 0;
  let refs: u32 = 0;
  let pins: u32 = 0;
  let spent: u32 = 0;
  let last: u32 = 0;
  let live: u32 = 0;
  for (let number: u32 = 1; number < untouched; number++) {
    const slot = at(number);
    hold(slot.claims == 0, Panic.Slots);
    hold(slot.generation <= SPENT, Panic.Slots);
    if (slot.state == FREE) {
      spent += u32(slot.generation == SPENT);
      continue;
    }
    live++;
    last += u32(slot.generation == SPENT - 1);
    if (slot.state == PRIVATE) privates++;
    if (slot.state == INACTIVE) idle++;
    if (slot.state != ACTIVE) continue;
    hold(slot.refs > 0 || slot.pins > 0, Panic.Slots);
    refs += slot.refs;
    pins += slot.pins;
  }
  hold(spent == retired && last == expiring, Panic.Slots);
  hold(live == pool.copies() && idle == inactive, Panic.Counters);
  hold(privates + refs == pool.references && pins == pool.pins, Panic.Counters);
  hold(live + pool.reserved <= pool.capacity && vacant() >= pool.reserved, Panic.Counters);
}

function verifyFree(): void {
  let count: u32 = 0;
  for (let slot = freed; some(slot); slot = slot.younger) {
    hold(++count <= recycled, Panic.Slots); // neither a ring nor a stranger
    hold(slot.state == FREE && slot.generation < SPENT, Panic.Slots);
  }
  hold(count == recycled, Panic.Slots);
}

function verifyInactive(): void {
  let count: u32 = 0;
  let previous = sentinel();
  for (let slot = previous.next; slot != sentinel(); slot = slot.next) {
    hold(++count <= inactive, Panic.InactiveList);
    hold(slot.state == INACTIVE && slot.prev == previous, Panic.InactiveList);
    previous = slot;
  }
  hold(count == inactive && sentinel().prev == previous, Panic.InactiveList);
}

// Every cached copy is reached from the entry of its hash, and every entry leads to an oldest copy.
function verifyIndex(): void {
  let cached: u32 = 0;
  let chained: u32 = 0;
  let oldest: u32 = 0;
  let distance: u32 = 0;
  for (let number: u32 = 1; number < untouched; number++) {
    const slot = at(number);
    if (slot.state != ACTIVE && slot.state != INACTIVE) continue;
    cached++;
    if (!isOldest(slot)) continue;
    oldest++;
    hold(find(slot.hash) == slot, Panic.HashIndex);
    distance += distanceOf(slot);
    chained += verifyCopies(slot);
  }
  hold(chained == cached, Panic.Copies);
  hold(oldest == entries && distance == passes(), Panic.HashIndex);
}

function verifyCopies(oldest: Slot): u32 {
  let count: u32 = 1;
  let slot = oldest;
  for (; some(slot.younger); slot = slot.younger) {
    const younger = slot.younger;
    hold(++count < untouched, Panic.Copies); // not a ring
    hold(younger.state == ACTIVE || younger.state == INACTIVE, Panic.Copies);
    hold(younger.elder == slot && younger.hash == oldest.hash, Panic.Copies);
  }
  hold(oldest.elder == slot, Panic.Copies);
  return count;
}
