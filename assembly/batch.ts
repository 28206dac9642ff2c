import { REFERENCES_MAX as REFERENCES_MAX_DEFAULT, Status, WORD_BYTES } from "../src/abi";
import { find } from "./hash-index";
import { makeRoom, makeWords, scratch, words } from "./layout";
import { sentinel, shift } from "./lru";
import * as pool from "./pool";
import { INACTIVE, PRIVATE, Slot, expiring, idOf, resolve, slotOf, some, vacant } from "./slots";

// The verbs that the facade calls. Each takes a batch from the scratch page, checks it whole, and only then changes
// anything. Words hold hashes (u64) or copy ids (f64). Results below zero are a Status, negated.

// @ts-ignore: defined by --use
@inline const REFERENCES_MAX: u32 = isDefined(CORE_REFERENCES_MAX) ? CORE_REFERENCES_MAX : REFERENCES_MAX_DEFAULT;

// The second result of the last verb: the position of the word that was refused, or a second count.
let second: i32 = 0;

export function detail(): i32 {
  return second;
}

@inline function wordAt(position: i32): usize {
  return scratch + <usize>position * WORD_BYTES;
}

// Every verb says first how many words it will read: the facade has made room for them.
@inline function expect(length: i32): void {
  assert(<usize>length <= words);
}

@inline function hashAt(position: i32): u64 {
  return load<u64>(wordAt(position));
}

@inline function idAt(position: i32): f64 {
  return load<f64>(wordAt(position));
}

@inline function putId(position: i32, slot: Slot): void {
  store<f64>(wordAt(position), idOf(slot));
}

// Between the passes of a verb a word holds the slot of the copy that it named: the second pass need not look it up.
// A reservation keeps such words, for slots neither move nor lose what is pinned in them.
@inline function slotAt(position: i32): Slot {
  return load<Slot>(wordAt(position));
}

@inline function put(position: i32, slot: Slot): void {
  store<Slot>(wordAt(position), slot);
}

// Takes back the claims on the copies in the first words.
function unclaim(count: i32): void {
  for (let position = 0; position < count; position++) slotAt(position).claims--;
}

@inline function refuse(status: Status, position: i32): i32 {
  second = position;
  return -status;
}

/** Counts the leading hashes that are resident; `detail` counts those of them that somebody holds. */
export function match(length: i32): i32 {
  expect(length);
  let active = 0;
  let position = 0;
  for (; position < length; position++) {
    const slot = find(hashAt(position));
    if (!some(slot)) break;
    active += i32(pool.isActive(slot));
  }
  second = active;
  return position;
}

/**
 * Pins the oldest copies of a prefix and sets room for `fresh` blocks aside. Leaves the pinned slots in the first
 * `length` words and the hashes that lost their last copy behind them. Returns how many of the latter.
 */
export function reserve(length: i32, fresh: u32): i32 {
  const resident = findPrefix(length);
  return resident < length ? refuse(Status.MissingPrefix, resident) : reserveFound(length, fresh);
}

/** Does as `reserve` for the leading resident hashes, with room for `total` blocks in all; `detail` counts the pinned. */
export function reserveResident(length: i32, total: u32): i32 {
  const resident = findPrefix(length);
  assert(<u32>resident <= total); // the facade refuses more candidates than blocks
  const removed = reserveFound(resident, total - <u32>resident);
  if (removed >= 0) second = resident;
  return removed;
}

// Puts the slots of the oldest copies in place of the leading resident hashes, and counts them.
function findPrefix(length: i32): i32 {
  expect(length);
  for (let position = 0; position < length; position++) {
    const slot = find(hashAt(position));
    if (!some(slot)) return position;
    put(position, slot);
  }
  return length;
}

function reserveFound(length: i32, fresh: u32): i32 {
  const room = pool.room();
  const victims = fresh > room ? fresh - room : 0;
  const status = mayReserve(length, fresh, victims);
  if (status != Status.Ok) return refuse(status, length);
  for (let position = 0; position < length; position++) pool.pin(slotAt(position));
  const removed = evict(length, victims);
  pool.setAside(fresh);
  return removed;
}

// Every reason against a reservation, before anything changes; the last one grows the memory.
function mayReserve(length: i32, fresh: u32, victims: u32): Status {
  let freed = victims;
  // The prefix hides at most its length from eviction. Only where that is too much has it to be counted exactly.
  if (victims > 0 && (<u64>victims + <u64>length > <u64>pool.evictable() || expiring > 0)) {
    const hidden = claimPrefix(length);
    const enough = victims <= pool.evictable() - hidden;
    if (enough) freed = pool.reusable(victims);
    unclaim(length);
    if (!enough) return Status.NoRoom;
  }
  const held = <u64>pool.references + <u64>pool.pins + <u64>pool.reserved;
  if (held + <u64>length + <u64>fresh > <u64>REFERENCES_MAX) return Status.ReferencesExhausted;
  const wanted = pool.reserved + fresh;
  const slots = vacant() + freed;
  return makeRoom(<usize>length + <usize>victims, wanted > slots ? wanted - slots : 0, pool.slotsEnough());
}

// Claims the copies of a prefix. Returns how many are inactive, each counted once: pinning hides them from eviction.
function claimPrefix(length: i32): u32 {
  let hidden: u32 = 0;
  for (let position = 0; position < length; position++) {
    const slot = slotAt(position);
    hidden += u32(slot.claims == 0 && slot.state == INACTIVE);
    slot.claims++;
  }
  return hidden;
}

// Evicts from the head of the list and leaves the hashes that lost their last copy from `position` on.
function evict(position: i32, victims: u32): i32 {
  let removed = 0;
  for (let left = victims; left > 0; left--) {
    const victim = shift();
    const hash = victim.hash;
    if (pool.evict(victim)) store<u64>(wordAt(position + removed++), hash);
  }
  return removed;
}

/** Turns the pins on the slots that a reservation kept into references, and leaves the ids of their copies. */
export function activate(length: i32): void {
  expect(length);
  for (let position = 0; position < length; position++) {
    const slot = slotAt(position);
    pool.activate(slot);
    putId(position, slot);
  }
}

/** Drops the pins on the slots that a reservation kept, leaf before root, and gives `fresh` blocks of room back. */
export function cancel(length: i32, fresh: u32): void {
  expect(length);
  for (let position = length - 1; position >= 0; position--) pool.unpin(slotAt(position));
  pool.takeBack(fresh);
}

/** Allocates private copies and leaves their ids. */
export function allocatePrivate(length: i32): void {
  expect(length);
  for (let position = 0; position < length; position++) putId(position, pool.allocate());
}

/** Allocates a cached copy for each hash behind the first `length` words, and leaves their ids there. Counts as `cache`. */
export function allocateCached(length: i32): i32 {
  expect(length << 1);
  for (let position = 0; position < length; position++) put(position, pool.allocate());
  return cacheAll(length);
}

/** Caches private copies: ids first, then as many hashes. Returns how many hashes became visible. */
export function cache(length: i32): i32 {
  expect(length << 1);
  for (let position = 0; position < length; position++) {
    const slot = resolve(idAt(position));
    const status = mayCache(slot);
    if (status != Status.Ok) {
      unclaim(position);
      return refuse(status, position);
    }
    slot.claims = 1;
    put(position, slot);
  }
  unclaim(length);
  return cacheAll(length);
}

// Caches the copies in the slots of the first words, each under its hash behind them, and leaves their ids.
function cacheAll(length: i32): i32 {
  let visible = 0;
  for (let position = 0; position < length; position++) {
    const slot = slotAt(position);
    visible += i32(pool.cache(slot, hashAt(length + position)));
    putId(position, slot);
  }
  return visible;
}

@inline function mayCache(slot: Slot): Status {
  if (!some(slot)) return Status.UnknownCopy;
  if (slot.state != PRIVATE) return Status.AlreadyCached;
  return slot.claims == 0 ? Status.Ok : Status.DuplicateCopy;
}

/**
 * Drops a reference of each id, in their order or, for a chain that was given head to tail, from its end. A release is
 * easily taken back, so a batch is checked while it is done: when an id is refused, those before it get theirs again.
 */
export function release(length: i32, backwards: i32): i32 {
  expect(length);
  const first = backwards ? length - 1 : 0;
  const step = backwards ? -1 : 1;
  for (let position = first, left = length; left > 0; position += step, left--) {
    const slot = resolve(idAt(position));
    const status = some(slot) ? pool.release(slot) : Status.UnknownCopy;
    if (status != Status.Ok) {
      for (let back = position - step; back != first - step; back -= step) pool.unrelease(slotOf(idAt(back)));
      return refuse(status, position);
    }
  }
  return Status.Ok;
}

/** Lists ids of inactive copies, those after `id` in order of eviction (0: from the first victim), and counts them. */
export function listInactive(id: f64, most: i32): i32 {
  expect(most);
  let slot = slotOf(id).next;
  let position = 0;
  for (; position < most && slot != sentinel(); slot = slot.next) putId(position++, slot);
  return position;
}

/** Makes the scratch page hold so many words. */
export function makeScratch(length: i32): i32 {
  return -makeWords(<usize>length);
}
