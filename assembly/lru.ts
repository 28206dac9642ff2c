import { ACTIVE, ARENA, INACTIVE, Slot } from "./slots";

// The inactive copies, those that may be evicted, in a ring through slot 0: its `next` is evicted first, its `prev`
// was released last. Nobody else writes the links.

/** How many copies may be evicted. */
export let inactive: u32 = 0;

/** The two ends of the list. */
@inline export function sentinel(): Slot {
  return changetype<Slot>(ARENA);
}

/** Makes the list empty. */
export function clear(): void {
  sentinel().prev = sentinel();
  sentinel().next = sentinel();
  inactive = 0;
}

/** Appends an active copy that lost its last reference and pin: it will be evicted after all that are there. */
@inline export function link(slot: Slot): void {
  assert((slot.refs | slot.pins) == 0); // only a copy that nobody holds, and that has no links there yet
  const last = sentinel().prev;
  slot.state = INACTIVE;
  slot.prev = last;
  slot.next = sentinel();
  last.next = slot;
  sentinel().prev = slot;
  inactive++;
}

/** Takes a copy out of the list; it is active again, without references and pins until the caller counts some. */
@inline export function unlink(slot: Slot): void {
  const prev = slot.prev;
  const next = slot.next;
  assert(slot.state == INACTIVE && prev.next == slot && next.prev == slot); // only a member leaves; both neighbours agree
  prev.next = next;
  next.prev = prev;
  slot.state = ACTIVE;
  slot.refs = 0;
  slot.pins = 0;
  inactive--;
}

/** Takes the first victim out of the list; the caller frees it. The list must not be empty. */
@inline export function shift(): Slot {
  const slot = sentinel().next;
  const next = slot.next;
  assert(slot.state == INACTIVE && next.prev == slot); // the sentinel is no victim; both neighbours agree
  sentinel().next = next;
  next.prev = sentinel();
  inactive--;
  return slot;
}
