import { Entry, Holder, isEntry, noEntry } from "./prefix-records";
import { ARENA } from "./slots";

// The order of use: of all entries, in a ring through record 0, and of the entries of each holder, in a ring through the
// holder. Both hold the same entries in the same order. Nobody else writes the links.

/** The two ends of the order of all entries: its `newer` was used longest ago, its `older` last. */
@inline export function sentinel(): Entry {
  return changetype<Entry>(ARENA);
}

/** Makes the order of all entries empty. */
export function clearOrder(): void {
  sentinel().older = sentinel();
  sentinel().newer = sentinel();
}

/** Makes the order of a holder empty. */
export function clearOwn(holder: Holder): void {
  holder.newestOwn = changetype<Entry>(holder);
  holder.oldestOwn = changetype<Entry>(holder);
}

/** The entry that was used longest ago; the sentinel where there is none. */
@inline export function oldest(): Entry {
  return sentinel().newer;
}

/** The next entry of the order of all, or null at its end. */
@inline export function newerThan(entry: Entry): Entry {
  const newer = entry.newer;
  return newer == sentinel() ? noEntry() : newer;
}

/** The entry of a holder that it used longest ago, or null. */
@inline export function oldestOf(holder: Holder): Entry {
  const entry = holder.oldestOwn;
  return changetype<usize>(entry) == changetype<usize>(holder) ? noEntry() : entry;
}

/** Puts an entry just before another of its holder, as used a little earlier; without one, at the new end. */
export function linkBefore(entry: Entry, anchor: Entry): void {
  const own = isEntry(anchor) ? anchor : changetype<Entry>(entry.holder);
  const all = isEntry(anchor) ? anchor : sentinel();
  assert(entry != anchor && (own != anchor || anchor.holder == entry.holder)); // an order is of one holder
  const before = own.olderOwn;
  entry.olderOwn = before;
  entry.newerOwn = own;
  before.newerOwn = entry;
  own.olderOwn = entry;
  const earlier = all.older;
  entry.older = earlier;
  entry.newer = all;
  earlier.newer = entry;
  all.older = entry;
}

/** Takes an entry out of both orders. */
export function unlink(entry: Entry): void {
  const olderOwn = entry.olderOwn;
  const newerOwn = entry.newerOwn;
  const older = entry.older;
  const newer = entry.newer;
  assert(olderOwn.newerOwn == entry && newerOwn.olderOwn == entry); // both neighbours agree
  assert(older.newer == entry && newer.older == entry);
  olderOwn.newerOwn = newerOwn;
  newerOwn.olderOwn = olderOwn;
  older.newer = newer;
  newer.older = older;
}
