import {
  ARENA as ARENA_DEFAULT,
  GENERATION_BITS as GENERATION_BITS_DEFAULT,
  SLOT_BITS as SLOT_BITS_DEFAULT,
} from "../src/abi";

// A slot holds one physical copy of a KV block. 32 bytes, so that two share a cache line and none straddles one.
//
//   0        8         12         16        20      24      28       32
//   ├─ hash ─┼─ first ─┼─ second ─┼─ younger┼─ elder┼─ stamp┼─ claims┤
//
// first, second: an active copy counts here, references first and pins second. An inactive copy has nothing to count
//   and is linked here, to its neighbours in the inactive list.
// younger, elder: the copies of one hash in order of caching. `younger` is null at the youngest; `elder` of the oldest
//   is the youngest, so both ends are one step from the copy that the index names. Free slots chain through `younger`.
// stamp: generation and state in one word, so that one comparison tells a live id from a stale one.
// claims: how often the batch now being checked names this copy; 0 between calls.
//
// Slots never move: links are addresses, and only an id has to be checked before it is followed.
@unmanaged export class Slot {
  hash: u64;
  first: u32;
  second: u32;
  younger: Slot;
  elder: Slot;
  stamp: u32;
  claims: u32;

  @inline get refs(): u32 { return this.first; }
  @inline set refs(count: u32) { this.first = count; }
  @inline get pins(): u32 { return this.second; }
  @inline set pins(count: u32) { this.second = count; }
  @inline get prev(): Slot { return changetype<Slot>(<usize>this.first); }
  @inline set prev(slot: Slot) { this.first = <u32>changetype<usize>(slot); }
  @inline get next(): Slot { return changetype<Slot>(<usize>this.second); }
  @inline set next(slot: Slot) { this.second = <u32>changetype<usize>(slot); }

  @inline get state(): u32 { return this.stamp & STATE_MASK; }
  @inline set state(state: u32) { this.stamp = (this.stamp & ~STATE_MASK) | state; }
  @inline get generation(): u32 { return this.stamp >>> STATE_BITS; }
  @inline get number(): u32 { return <u32>((changetype<usize>(this) - ARENA) / SLOT_BYTES); }
}

@inline export const SLOT_BYTES: usize = 32;
if (offsetof<Slot>() != SLOT_BYTES) ERROR("A slot is 32 bytes");

@inline const STATE_BITS: u32 = 2;
@inline const STATE_MASK: u32 = (1 << STATE_BITS) - 1;

/** The states of a slot. */
@inline export const FREE: u32 = 0;
/** A copy that belongs to one request and that no hash leads to. */
@inline export const PRIVATE: u32 = 1;
/** A cached copy with at least one reference or pin. */
@inline export const ACTIVE: u32 = 2;
/** A cached copy that may be evicted. */
@inline export const INACTIVE: u32 = 3;

// Checked builds narrow these, so that a test can spend them.
// @ts-ignore: defined by --use
@inline export const GENERATION_BITS: u32 = isDefined(CORE_GENERATION_BITS) ? CORE_GENERATION_BITS : GENERATION_BITS_DEFAULT;
// @ts-ignore: defined by --use
@inline export const SLOT_NUMBERS: u32 = 1 << (isDefined(CORE_SLOT_BITS) ? CORE_SLOT_BITS : SLOT_BITS_DEFAULT);
/** The address of slot 0. Constant, so that a slot's address is its number and a shift. */
// @ts-ignore: defined by --use
@inline export const ARENA: usize = isDefined(CORE_ARENA) ? CORE_ARENA : ARENA_DEFAULT;

@inline const GENERATION_LAST: u32 = (1 << GENERATION_BITS) - 1;
@inline const NUMBER_MASK: u64 = (1 << SLOT_BITS_DEFAULT) - 1;

/** How many slots the arena has room for. Slot 0 holds no copy: it is the sentinel of the inactive list. */
export let slots: u32 = 0;
/** Slots from this number on have never been used. */
export let untouched: u32 = 1;
/** How many used slots are free again. */
export let recycled: u32 = 0;
/** How many slots have spent all their generations. */
export let retired: u32 = 0;
/** How many live copies are in the last generation of their slot. */
export let expiring: u32 = 0;
/** The free slot that is taken next: the one freed last, whose cache line is still warm. */
export let freed: Slot = nil();

// Mixed into the generations of ids, so that an id of another pool, sealed otherwise, is unknown here.
let key: u32 = 0;

/** Seals the ids of a new pool with up to 29 bits. */
export function seal(bits: u32): void {
  assert(untouched == 1 && bits < 1 << GENERATION_BITS_DEFAULT); // before the first id is issued
  key = bits;
}

/** No slot. */
@inline export function nil(): Slot {
  return changetype<Slot>(0);
}

/** Tells whether there is a slot. */
@inline export function some(slot: Slot): bool {
  return changetype<usize>(slot) != 0;
}

/** The slot of a number. */
@inline export function at(number: u32): Slot {
  assert(number < slots); // the arena is the only place that slots live in
  return changetype<Slot>(ARENA + <usize>number * SLOT_BYTES);
}

/** Lengthens the arena. The memory behind it is not clean: a slot is written when it is first taken. */
export function lengthen(length: u32): void {
  assert(length >= slots && length <= SLOT_NUMBERS); // a slot in use is never lost
  slots = length;
}

/** Counts the slots that can be taken without growing. */
@inline export function vacant(): u32 {
  return recycled + (slots - untouched);
}

/** Takes a free slot; it keeps its generation and becomes a private copy without hash. */
@inline export function take(): Slot {
  const slot = freed;
  if (!some(slot)) return takeUntouched();
  assert(slot.state == FREE); // the free list holds free slots only
  freed = slot.younger;
  recycled--;
  slot.stamp |= PRIVATE;
  expiring += u32(isExpiring(slot));
  return slot;
}

function takeUntouched(): Slot {
  const slot = at(untouched++);
  slot.stamp = PRIVATE; // generation 0
  slot.claims = 0;
  expiring += u32(isExpiring(slot));
  return slot;
}

/** Frees a slot, so that its id never answers again. A slot whose generations are spent is retired. */
@inline export function give(slot: Slot): void {
  assert(slot.state != FREE && slot.claims == 0); // freed once, and not while a batch counts on it
  const last = isExpiring(slot);
  slot.stamp = (slot.generation + 1) << STATE_BITS; // the state is FREE
  if (last) {
    expiring--;
    retired++;
    return;
  }
  slot.younger = freed;
  freed = slot;
  recycled++;
}

/** Takes back the last `give`, of this slot and as a private copy. */
export function ungive(slot: Slot): void {
  assert(slot.state == FREE);
  slot.stamp = ((slot.generation - 1) << STATE_BITS) | PRIVATE;
  if (isExpiring(slot)) {
    retired--;
    expiring++;
    return;
  }
  assert(freed == slot); // it was the last
  freed = slot.younger;
  recycled--;
}

/** Tells whether a copy is in the last generation of its slot, so that freeing it retires the slot. */
@inline export function isExpiring(slot: Slot): bool {
  return slot.generation == GENERATION_LAST;
}

/** The id of the copy in a slot: sealed generation and number in one double. */
@inline export function idOf(slot: Slot): f64 {
  return <f64><i64>((<u64>(slot.generation ^ key) << SLOT_BITS_DEFAULT) | <u64>slot.number);
}

/** The slot that an id of a reservation names: what a reservation pinned is there. */
@inline export function slotOf(id: f64): Slot {
  return at(<u32>(<u64><i64>id & NUMBER_MASK));
}

/** The slot of the live copy that an id names, or nil: any double may be asked for. */
@inline export function resolve(id: f64): Slot {
  const bits = <u64><i64>id; // saturates: NaN and what is out of range cannot come back equal
  const number = <u32>(bits & NUMBER_MASK);
  if (number >= untouched || <f64><i64>bits != id) return nil();
  const slot = at(number);
  const stamp = slot.stamp; // the sentinel is free for ever
  return bits >> SLOT_BITS_DEFAULT == <u64>((stamp >>> STATE_BITS) ^ key) && (stamp & STATE_MASK) != FREE ? slot : nil();
}
