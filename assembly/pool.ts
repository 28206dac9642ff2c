import { Status } from "../src/abi";
import { append, remove } from "./copies";
import { inactive, link, sentinel, unlink } from "./lru";
import {
  ACTIVE,
  FREE,
  INACTIVE,
  PRIVATE,
  Slot,
  give,
  isExpiring,
  recycled,
  retired,
  take,
  ungive,
  untouched,
  vacant,
} from "./slots";

// What happens to one block. The loops over batches are in batch.ts.

/** How many blocks the pool models. */
export let capacity: u32 = 0;
/** Room that reservations hold and have not used. */
export let reserved: u32 = 0;
/** References of all copies: one for a private copy, one a holder for a cached copy. */
export let references: u32 = 0;
/** Pins of all copies: one for each entry of a prefix that is reserved and not yet activated. */
export let pins: u32 = 0;

/** Sets the capacity of a new pool. */
export function open(blocks: u32): void {
  capacity = blocks;
}

/** Counts the physical copies: slots that are neither free nor retired. */
@inline export function copies(): u32 {
  return untouched - 1 - recycled - retired;
}

/** Counts the blocks that are neither taken nor reserved. */
@inline export function room(): u32 {
  const taken = copies() + reserved;
  assert(taken <= capacity); // the pool never promises more than it has
  return capacity - taken;
}

/** Sets room aside for a reservation. */
export function setAside(fresh: u32): void {
  reserved += fresh;
  assert(copies() + reserved <= capacity && vacant() >= reserved); // every promise has its block and its slot
}

/** Gives back room that a reservation has not used. */
export function takeBack(fresh: u32): void {
  assert(fresh <= reserved); // a reservation gives back what it holds
  reserved -= fresh;
}

/** Pins a cached copy: while a reservation holds it, it stays. */
@inline export function pin(slot: Slot): void {
  pins++;
  if (slot.state == INACTIVE) {
    unlink(slot);
    slot.pins = 1;
    return;
  }
  assert(slot.state == ACTIVE); // a hash leads to cached copies only
  slot.pins++;
}

/** Drops a pin. */
@inline export function unpin(slot: Slot): void {
  assert(slot.state == ACTIVE && slot.pins > 0); // what a reservation pinned stays pinned
  slot.pins--;
  pins--;
  if (slot.pins == 0 && slot.refs == 0) link(slot);
}

/** Turns a pin into a reference. */
@inline export function activate(slot: Slot): void {
  assert(slot.state == ACTIVE && slot.pins > 0); // what a reservation pinned stays pinned
  slot.pins--;
  slot.refs++;
  pins--;
  references++;
}

/** Turns a block of reserved room into a private copy. */
@inline export function allocate(): Slot {
  assert(reserved > 0); // the facade counts what each reservation has left
  reserved--;
  references++;
  return take();
}

/** Lets a private copy answer to a hash. Returns whether the hash became visible. */
@inline export function cache(slot: Slot, hash: u64): bool {
  assert(slot.state == PRIVATE); // a copy enters the cache once
  slot.hash = hash;
  slot.state = ACTIVE;
  slot.refs = 1;
  slot.pins = 0;
  return append(slot);
}

/** Drops a reference, or says why not: a private copy goes, a cached one that nobody holds becomes evictable. */
@inline export function release(slot: Slot): Status {
  const state = slot.state;
  if (state == PRIVATE) {
    give(slot);
  } else {
    const refs = slot.refs;
    if (state != ACTIVE || refs == 0) return Status.NotReferenced;
    slot.refs = refs - 1;
    if (refs == 1 && slot.pins == 0) link(slot);
  }
  references--;
  return Status.Ok;
}

/** Takes back the last `release`, of this copy. */
export function unrelease(slot: Slot): void {
  references++;
  if (slot.state == FREE) {
    ungive(slot);
    return;
  }
  if (slot.state == INACTIVE) unlink(slot);
  slot.refs++;
}

/** Evicts the copy that was released first. Returns whether its hash lost its last copy. */
@inline export function evict(slot: Slot): bool {
  const last = remove(slot);
  give(slot);
  return last;
}

/** Tells whether somebody holds a cached copy. */
@inline export function isActive(slot: Slot): bool {
  return slot.state == ACTIVE;
}

/** Counts the slots that eviction would free among the first victims, passing over copies that a batch has claimed. */
export function reusable(victims: u32): u32 {
  let count: u32 = 0;
  let slot = sentinel().next;
  for (let left = victims; left > 0; slot = slot.next) {
    assert(slot != sentinel()); // the caller has counted the victims
    if (slot.claims != 0) continue;
    left--;
    count += u32(!isExpiring(slot));
  }
  return count;
}

/** Counts the copies that may be evicted. */
@inline export function evictable(): u32 {
  return inactive;
}

/** Counts the slots that a full pool needs when none retires any more. */
@inline export function slotsEnough(): u32 {
  return capacity + 1 + retired;
}
