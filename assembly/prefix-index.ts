import { clearOwn, linkBefore, oldest, oldestOf, unlink } from "./prefix-order";
import { Entry, Holder, Node, SLOT_BITS, SLOT_MASK, give, isEntry, isNode, noEntry, take } from "./prefix-records";
import { addEntry, addNode, entries, findEntry, findNode, removeEntry, removeNode } from "./prefix-tables";
import { link as linkOwner, unlink as unlinkOwner } from "./prefix-owners";

// What happens to one block of one holder. The loops over batches are in prefix-batch.ts.
//
// A use of a block is a use of its ancestors, so that leaves are evicted before their parents. A block that is stored
// under a known parent would drag the whole chain to the new end of the order, once for every block that an engine adds.
// It need not: where an ancestor was used a short time ago, the block takes its place just before it, with its stamp. So
// a chain is walked to its root only when an eighth of what its holder may keep has been used since. So the new end of a
// full holder always holds more than its recent entries: none of them is the next to go.

@inline const LAG_SHIFT: u32 = 3;

/** How many entries the index keeps. */
export let entriesMax: u32 = 0;
/** How many entries a holder keeps, unless it has a limit of its own below that. */
export let ownMax: u32 = 0;
/** How long an entry is valid after its last use, in milliseconds; 0: for ever. */
export let ttl: f64 = 0;
/** The present in the unit of stamps. Never goes back. */
export let clock: f64 = 0;
/** How many holders are registered. */
export let holders: u32 = 0;
/** How many entries went because the index or their holder was full. */
export let evicted: f64 = 0;
/** How many entries went because their time had come. */
export let expired: f64 = 0;

// Registrations so far.
let serials: u64 = 0;
// The stamp of what the present call uses.
let stamp: f64 = 0;

// A stamp while its entry is being walked over.
@inline const WALKED: f64 = -1;

/** Sets the bounds of a new index. */
export function open(most: u32, mostOwn: u32, ttlMs: f64): void {
  assert(most > 0 && mostOwn > 0 && mostOwn <= most && ttlMs >= 0); // the facade checks what users pass
  entriesMax = most;
  ownMax = mostOwn;
  ttl = ttlMs;
}

/** Counts the records that the index can ever need while it has so many holders: the sentinel, and a node an entry. */
@inline export function recordsEnough(registered: u32): u32 {
  return 1 + registered + (entriesMax << 1);
}

/** Registers a holder under its number on the other side of the border. */
export function register(slot: u32): Holder {
  assert(slot <= SLOT_MASK); // the facade knows no more holders than that
  const holder = changetype<Holder>(take());
  holder.serial = (++serials << SLOT_BITS) | slot;
  holder.mark = 0;
  holder.entries = 0;
  holder.limit = ownMax;
  holder.orphaned = -1;
  clearOwn(holder);
  holders++;
  return holder;
}

/** Forgets a holder that has no entry left. */
export function unregister(holder: Holder): void {
  assert(holder.entries == 0);
  give(changetype<usize>(holder));
  holders--;
}

/** Drops everything that a holder has. */
export function clear(holder: Holder): void {
  for (let entry = oldestOf(holder); isEntry(entry); entry = oldestOf(holder)) drop(entry);
}

/** Limits the entries of a holder: where it has more, those that it used longest ago go. */
export function limit(holder: Holder, most: u32): void {
  assert(most > 0 && most <= ownMax); // the facade checks what users pass
  holder.limit = most;
  while (holder.entries > most) evict(oldestOf(holder));
}

/** Lets time pass, where blocks have a time to live: it never goes back, and what is too old goes. */
export function pass(nowMs: f64): void {
  if (ttl == 0) return;
  clock = max(clock, nowMs);
  while (entries > 0 && clock - oldest().stamp > ttl) {
    drop(oldest());
    expired++;
  }
}

/**
 * Begins a store: uses the ancestors of what follows, from the block with the hash `parent` on, and settles the stamp of
 * the call. Returns the entry of that block, or null where the holder does not have it.
 */
export function begin(holder: Holder, parent: u64): Entry {
  const start = entryOf(parent, holder);
  const recent = walk(holder, start);
  stamp = isEntry(recent) ? recent.stamp : clock;
  for (let entry = start; isEntry(entry) && entry.stamp == WALKED; entry = above(entry)) {
    unlink(entry);
    use(entry, recent);
  }
  return start;
}

/** Begins a store of a chain from its root on. */
export function beginAtRoot(): void {
  stamp = clock;
}

// Marks a block and its ancestors up to the first that was used a short time ago, and returns that one; or null, where
// there is none. A chain that bites its tail, which only a caller's mistake can make, ends where it does.
function walk(holder: Holder, start: Entry): Entry {
  let top = noEntry();
  for (let entry = start; isEntry(entry) && entry.stamp != WALKED; entry = above(entry)) {
    if (isRecent(entry)) return entry;
    entry.stamp = WALKED;
    top = entry;
  }
  if (!isEntry(top) || !isRoot(top.node)) holder.orphaned = clock;
  return noEntry();
}

// A block that takes its place before another is older than all that were used later, and its children must be older
// still. The holder may have a child of it only if it once used that one without it: everything older than that is not
// recent any more.
function isRecent(entry: Entry): bool {
  const lag = ttl > 0 ? 0 : <f64>(entry.holder.limit >> LAG_SHIFT);
  return clock - entry.stamp <= lag && entry.stamp > entry.holder.orphaned;
}

@inline function isRoot(node: Node): bool {
  return node.parent == node.hash;
}

/** The entry of the same holder at the parent block, or null. */
function above(entry: Entry): Entry {
  const node = entry.node;
  return isRoot(node) ? noEntry() : entryOf(node.parent, entry.holder);
}

/** The entry of a holder at the block of a hash, or null. */
export function entryOf(hash: u64, holder: Holder): Entry {
  const node = findNode(hash);
  return isNode(node) ? findEntry(node, holder) : noEntry();
}

/**
 * Stores a block, as used just before `anchor`, the entry of its parent, or just now if there is none. Returns its
 * entry; or null, where its room could only be had from the chain itself, and then nothing has changed.
 */
export function hold(holder: Holder, hash: u64, parent: u64, anchor: Entry): Entry {
  let entry = entryOf(hash, holder);
  if (!isEntry(entry)) {
    if (!makeRoom(holder, anchor)) return noEntry();
    entry = create(holder, hash);
    use(entry, anchor);
  } else if (entry != anchor) {
    unlink(entry);
    use(entry, anchor);
  }
  entry.node.parent = parent;
  return entry;
}

// Where the index or the holder is full, evicts what was used longest ago, unless that is the anchor.
function makeRoom(holder: Holder, anchor: Entry): bool {
  const hasOwn = holder.entries < holder.limit;
  if (hasOwn && entries < entriesMax) return true;
  const victim = hasOwn ? oldest() : oldestOf(holder);
  if (victim == anchor) return false;
  evict(victim);
  return true;
}

function evict(entry: Entry): void {
  drop(entry);
  evicted++;
}

/** Creates the entry of a holder, which has room for it, at the block of a hash; it is in no order yet. */
export function create(holder: Holder, hash: u64): Entry {
  let node = findNode(hash);
  if (!isNode(node)) node = createNode(hash);
  const entry = changetype<Entry>(take());
  entry.holder = holder;
  entry.node = node;
  addEntry(entry);
  linkOwner(entry);
  holder.entries++;
  assert(holder.entries <= holder.limit && entries <= entriesMax); // room was made before
  return entry;
}

function createNode(hash: u64): Node {
  const node = changetype<Node>(take());
  node.hash = hash;
  node.parent = hash;
  node.signature = 0;
  node.first = noEntry();
  node.count = 0;
  addNode(node);
  return node;
}

// Puts an entry that is in no order into both.
function use(entry: Entry, anchor: Entry): void {
  linkBefore(entry, anchor);
  entry.stamp = stamp;
  if (ttl == 0) clock++;
}

/** Drops an entry, and its node with the last of its entries, whoever holds its ancestors or descendants. */
export function drop(entry: Entry): void {
  const node = entry.node;
  unlink(entry);
  removeEntry(entry);
  unlinkOwner(entry);
  entry.holder.entries--;
  give(changetype<usize>(entry));
  if (node.count > 0) return;
  removeNode(node);
  give(changetype<usize>(node));
}
