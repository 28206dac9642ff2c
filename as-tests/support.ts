import { allocateCached, allocatePrivate, create, release, reserve } from "../assembly/core";
import { entries, indexBytes } from "../assembly/hash-index";
import { layouts, scratch, words } from "../assembly/layout";
import { inactive, sentinel } from "../assembly/lru";
import { panic, panicCode } from "../assembly/panic";
import * as pool from "../assembly/pool";
import {
  ARENA,
  FREE,
  PRIVATE,
  Slot,
  at,
  expiring,
  freed,
  recycled,
  resolve,
  retired,
  slots,
  some,
  untouched,
} from "../assembly/slots";
import { verify } from "../assembly/verify";
import { PAGES_MAX, Panic, WORD_BYTES } from "../src/abi";

// What several specs need. A spec is one instance of the core and opens one pool; its tests run in order and each
// leaves the pool as it found it, so that a failed one does not hide what the next would say.

/** How many copies a slot serves in this build before it retires. */
export const GENERATIONS: u32 = 1 << 3;

const HEAP_BYTES: usize = 8 << 20;

/** Opens the pool of a spec. */
export function open(capacity: u32, pages: u32 = PAGES_MAX): i32 {
  // The heap of the test runner starts below the arena. If it had to grow later it would go on behind the memory of
  // the core, where the core means to grow itself: taken once and freed, this much is the runner's own.
  heap.free(heap.alloc(HEAP_BYTES));
  assert(<usize>memory.size() << 16 <= ARENA || words > 0);
  return create(capacity, pages);
}

export function putHash(position: i32, hash: u64): void {
  store<u64>(scratch + <usize>position * WORD_BYTES, hash);
}

export function hashAt(position: i32): u64 {
  return load<u64>(scratch + <usize>position * WORD_BYTES);
}

export function putId(position: i32, id: f64): void {
  store<f64>(scratch + <usize>position * WORD_BYTES, id);
}

export function idAt(position: i32): f64 {
  return load<f64>(scratch + <usize>position * WORD_BYTES);
}

/** Writes hashes to the first words of the scratch page and counts them. */
export function putHashes(hashes: StaticArray<u64>): i32 {
  for (let position = 0; position < hashes.length; position++) putHash(position, hashes[position]);
  return hashes.length;
}

/** Writes ids to the first words of the scratch page and counts them. */
export function putIds(ids: StaticArray<f64>): i32 {
  for (let position = 0; position < ids.length; position++) putId(position, ids[position]);
  return ids.length;
}

/** Makes a private copy. */
export function newPrivate(): f64 {
  expect(reserve(0, 1)).toBeGreaterThanOrEqual(0);
  allocatePrivate(1);
  return idAt(0);
}

/** Makes a cached copy with one reference. */
export function newCached(hash: u64): f64 {
  expect(reserve(0, 1)).toBeGreaterThanOrEqual(0);
  putHash(1, hash);
  allocateCached(1);
  return idAt(0);
}

/** Makes a cached copy that nobody holds. */
export function newInactive(hash: u64): f64 {
  const id = newCached(hash);
  drop(id);
  return id;
}

/** Releases one copy. */
export function drop(id: f64): void {
  putId(0, id);
  expect(release(1, 0)).toBe(0);
}

/** Evicts every copy that nobody holds, by asking for the whole room and giving it back. */
export function evictAll(): void {
  const blocks = pool.room() + inactive;
  expect(reserve(0, blocks)).toBeGreaterThanOrEqual(0);
  pool.takeBack(blocks);
  expect(inactive).toBe(0);
  verify();
}

/** The slot of a live copy. */
export function live(id: f64): Slot {
  const slot = resolve(id);
  assert(some(slot));
  return slot;
}

/**
 * The hashes of the inactive copies from the first victim on; a link that does not lead back shows as "!". Walks no
 * further than there are slots, so that a broken list fails its test and does not hang it.
 */
export function victims(): string {
  let list = "";
  let previous = sentinel();
  for (let slot = previous.next, left = slots; slot != sentinel() && left > 0; slot = slot.next, left--) {
    list += `${list.length ? " " : ""}${slot.hash}${slot.prev == previous ? "" : "!"}`;
    previous = slot;
  }
  return list + (sentinel().prev == previous ? "" : "!");
}

/** Lets the free slots start at generation 0 again, so that no test spends what another needs. */
export function renew(): void {
  for (let slot = freed, left = slots; some(slot) && left > 0; slot = slot.younger, left--) slot.stamp = FREE;
}

/** One number for all that the pool keeps: copies, free slots, lists, index, counters, and where they are. */
export function fingerprint(): u64 {
  let sum: u64 = 0;
  for (let number: u32 = 1; number < untouched; number++) sum = blendSlot(sum, at(number));
  for (let address = scratch - indexBytes(slots); address < scratch; address += 8) {
    sum = blend(sum, load<u32>(address), load<u32>(address, 4));
  }
  sum = blend(sum, pool.capacity, pool.reserved);
  sum = blend(sum, pool.references, pool.pins);
  sum = blend(sum, inactive, entries);
  sum = blend(sum, slots, untouched);
  sum = blend(sum, recycled, retired);
  sum = blend(sum, expiring, address(freed));
  sum = blend(sum, address(sentinel().prev), address(sentinel().next));
  sum = blend(sum, <u32>scratch, <u32>words);
  return blend(sum, layouts, memory.size());
}

// What a slot means: a private copy has neither hash nor links, a free slot only the next one, a retired slot nothing.
function blendSlot(sum: u64, slot: Slot): u64 {
  sum = blend(sum, slot.stamp, slot.claims);
  if (slot.state == PRIVATE) return sum;
  if (slot.state == FREE) return slot.generation < GENERATIONS ? blend(sum, address(slot.younger), 0) : sum;
  sum = blend(sum, <u32>(slot.hash >> 32), <u32>slot.hash);
  sum = blend(sum, slot.first, slot.second);
  return blend(sum, address(slot.younger), address(slot.elder));
}

function address(slot: Slot): u32 {
  return <u32>changetype<usize>(slot);
}

function blend(sum: u64, high: u32, low: u32): u64 {
  return (sum ^ ((<u64>high << 32) | <u64>low)) * 0x9e3779b97f4a7c15 + 1;
}

/** Forgets why the core stopped last, so that the next reason is seen to be new. */
export function forget(): void {
  expect(() => panic(Panic.None)).toThrow();
  expect(panicCode()).toBe(Panic.None);
}

/** Expects that `verify` stops the core for a reason. */
export function expectFound(reason: Panic): void {
  forget();
  expect(() => verify()).toThrow("verify found nothing");
  expect(panicCode()).toBe(reason);
}
