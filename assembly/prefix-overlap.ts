import { Status, WORD_BYTES } from "../src/abi";
import { makeWords, scratch } from "./layout";
import { pass } from "./prefix-index";
import { expectWords } from "./prefix-layout";
import { Holder, Node, isEntry, isNode } from "./prefix-records";
import { findNode, findNodeInline } from "./prefix-tables";

// Who holds how much of a chain, counted from its root without a gap.
//
// The candidates are those who hold the first block. At each further level those who do not hold it leave. The blocks of
// a prefix are mostly held by the same workers, and the signatures of two levels tell that in one comparison: a level
// where nobody leaves costs one look-up, whoever they are.
//
// A candidate carries a mark: where the owners last changed before it left. Marks grow over all calls, so that none has
// to be cleared. The first half of the word of a level that gave marks, whose hash has been read, takes the level at
// which the next ones were given: that is how many blocks those have who still carry the older mark.

// The mark of the first level of the next call.
let marks: u64 = 1;

@inline function hashAt(level: i32): u64 {
  return load<u64>(scratch + <usize>level * WORD_BYTES);
}

@inline function endAt(level: i32): usize {
  return scratch + <usize>level * WORD_BYTES;
}

/**
 * Finds who holds leading blocks of the chain in the first `length` words, one at least. Leaves pairs of 32 bits, slot and blocks,
 * behind those words, most blocks first and then who registered first. Returns how many.
 */
export function overlap(length: i32, nowMs: f64): i32 {
  expectWords(length);
  let root = findNode(hashAt(0));
  if (isNode(root)) {
    const status = makeWords(<usize>length + <usize>root.count);
    if (status != Status.Ok) return -status;
  }
  pass(nowMs);
  root = findNode(hashAt(0)); // it may have gone
  if (!isNode(root)) return 0;
  const base = marks;
  marks += <u64>length;
  descend(root, length, base);
  return rank(root, length, base);
}

// Marks the candidates, then goes down as long as one is left.
function descend(root: Node, length: i32, base: u64): void {
  for (let entry = root.first; isEntry(entry); entry = entry.following) entry.holder.mark = base;
  let given = 0; // the level at which those who are left got their mark
  let before = root;
  let level = 1;
  for (; level < length; level++) {
    const node = findNodeInline(hashAt(level));
    if (!isNode(node)) break;
    if (node.count == before.count && node.signature == before.signature) continue;
    if (!sift(node, base + <u64>given, base + <u64>level)) break;
    store<u32>(endAt(given), level);
    given = level;
    before = node;
  }
  store<u32>(endAt(given), level);
}

// Gives those who are left and hold a node their next mark. Returns whether there are any.
function sift(node: Node, from: u64, to: u64): bool {
  let stays = false;
  for (let entry = node.first; isEntry(entry); entry = entry.following) {
    const holder = entry.holder;
    if (holder.mark != from) continue;
    holder.mark = to;
    stays = true;
  }
  return stays;
}

// Lists the candidates behind the hashes and sorts them. The youngest entry of a node comes first: from the end, the list
// is mostly in the order of registration already.
function rank(root: Node, length: i32, base: u64): i32 {
  const list = endAt(length);
  const count = <i32>root.count;
  let free = list + (<usize>count << 2);
  for (let entry = root.first; isEntry(entry); entry = entry.following) {
    free -= 4;
    store<Holder>(free, entry.holder);
  }
  sort(list, count);
  for (let position = count - 1; position >= 0; position--) { // from the end: a pair is longer than what it replaces
    const holder = load<Holder>(list + (<usize>position << 2));
    const pair = list + (<usize>position << 3);
    store<u32>(pair, holder.slot);
    store<u32>(pair, load<u32>(endAt(<i32>(holder.mark - base))), 4);
  }
  return count;
}

@inline function precedes(a: Holder, b: Holder): bool {
  return a.mark > b.mark || (a.mark == b.mark && a.serial < b.serial);
}

@inline const MOVES_SHIFT: i32 = 3;

// In place: by insertion, where that takes few moves, as it does when the list is nearly in order; else by Shell's sort.
function sort(list: usize, count: i32): void {
  if (insertAll(list, count, 1, count << MOVES_SHIFT)) return;
  for (let gap = count; gap > 1; ) {
    gap = gap < 5 ? 1 : (gap * 5 - 1) / 11;
    insertAll(list, count, gap, i32.MAX_VALUE);
  }
}

// Sorts what stands `gap` apart. Gives up after so many moves and returns false; all are still there then.
function insertAll(list: usize, count: i32, gap: i32, moves: i32): bool {
  const step = <usize>gap << 2;
  for (let position = gap; position < count; position++) {
    let place = list + (<usize>position << 2);
    const holder = load<Holder>(place);
    while (moves > 0 && place >= list + step && precedes(holder, load<Holder>(place - step))) {
      store<Holder>(place, load<Holder>(place - step));
      place -= step;
      moves--;
    }
    store<Holder>(place, holder);
    if (moves == 0) return false;
  }
  return true;
}
