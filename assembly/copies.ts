import { erase, find, findOrInsert, rename } from "./hash-index";
import { Slot, nil, some } from "./slots";

// The physical copies of one hash, chained in order of caching. The index names the oldest. vLLM does not deduplicate:
// two requests that compute the same block at the same time leave two copies, and every lookup goes to the older one.

/** Adds a copy as the youngest of its hash. Returns whether it is the first, so that the hash became visible. */
@inline export function append(slot: Slot): bool {
  slot.younger = nil();
  slot.elder = slot;
  const oldest = findOrInsert(slot);
  if (!some(oldest)) return true;
  chain(slot, oldest);
  return false;
}

/** Takes a copy out of the chain of its hash. Returns whether it was the last, so that the hash is no longer visible. */
@inline export function remove(slot: Slot): bool {
  if (slot.elder != slot) {
    unchain(slot);
    return false;
  }
  assert(!some(slot.younger)); // a copy that is its own elder is alone
  erase(slot);
  return true;
}

/** Tells whether a cached copy is the oldest of its hash: its elder is the youngest, which nobody follows. */
@inline export function isOldest(slot: Slot): bool {
  return !some(slot.elder.younger);
}

// Puts a copy behind the youngest of a chain.
function chain(slot: Slot, oldest: Slot): void {
  const youngest = oldest.elder;
  slot.elder = youngest;
  youngest.younger = slot;
  oldest.elder = slot;
}

// Takes a copy out of a chain of several; those that stay keep their order.
function unchain(slot: Slot): void {
  const younger = slot.younger;
  const elder = slot.elder;
  if (isOldest(slot)) {
    rename(slot, younger);
    younger.elder = elder;
    return;
  }
  const follower = some(younger) ? younger : find(slot.hash); // the oldest keeps the way to the youngest
  elder.younger = younger;
  follower.elder = elder;
}
