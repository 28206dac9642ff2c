import { scratch } from "../assembly/layout";
import { clearHolder, limitHolder, numBlocks, numEntries, numEvicted, removeBlocks, removeHolder } from "../assembly/prefix-batch";
import * as index from "../assembly/prefix-index";
import { overlap } from "../assembly/prefix-overlap";
import { holderAt, recycled, untouched, used } from "../assembly/prefix-records";
import { findNode } from "../assembly/prefix-tables";
import { verifyIndex } from "../assembly/prefix-verify";
import { openIndex, order, putHash, putHashes, storeAll } from "./prefix-support";

let first: i32 = 0;
let second: i32 = 0;

/** Asks who holds a chain; pairs of slot and blocks. */
function asked(hashes: StaticArray<u64>): string {
  const length = putHashes(hashes);
  const count = overlap(length, 0);
  let list = "";
  for (let pair = 0; pair < count; pair++) {
    const address = scratch + (<usize>(length + pair) << 3);
    list += `${pair ? " " : ""}${load<u32>(address)}:${load<u32>(address, 4)}`;
  }
  return list;
}

// Sixteen entries: an ancestor is recent while at most two uses have passed.
describe("prefix index", () => {
  beforeAll(() => {
    openIndex(16, 16);
  });

  afterEach(() => {
    verifyIndex();
  });

  it("a chain stands leaf first in the order of use", () => {
    first = storeAll(0, [1, 2, 3]);
    expect(first).toBe(1);
    expect(order()).toBe("3 2 1");
  });

  it("a store of known blocks uses them, in the same order", () => {
    storeAll(first, [9]);
    storeAll(first, [1, 2]);
    expect(order()).toBe("3 9 2 1");
  });

  it("a block under a recent parent takes its place just before it", () => {
    storeAll(first, [4], 2);
    expect(order()).toBe("3 9 4 2 1");
    expect(findNode(4).first.stamp).toBe(findNode(2).first.stamp);
  });

  it("a block under a parent that is not recent takes its ancestors to the new end", () => {
    storeAll(first, [10]);
    storeAll(first, [11]);
    storeAll(first, [12]);
    storeAll(first, [5], 4);
    expect(order()).toBe("3 9 10 11 12 5 4 2 1");
  });

  it("a walk ends at the first recent ancestor, and what it passed takes its place just before that one", () => {
    storeAll(first, [1, 2]);
    storeAll(first, [8], 4);
    expect(order()).toBe("3 9 10 11 12 5 8 4 2 1");
    putHash(0, 8);
    removeBlocks(first, 1);
  });

  it("a block under a parent that its holder does not have takes its place at the new end", () => {
    second = storeAll(0, [6], 5);
    expect(order()).toBe("3 9 10 11 12 5 4 2 1 6");
    expect(holderAt(second).orphaned).toBe(index.clock - 1);
    expect(holderAt(first).orphaned).toBe(-1);
  });

  it("after that, what the holder used before it is not recent", () => {
    storeAll(second, [20]);
    storeAll(second, [21], 20);
    expect(order()).toBe("3 9 10 11 12 5 4 2 1 6 21 20");
    storeAll(second, [6], 5);
    storeAll(second, [22], 20);
    expect(order()).toBe("3 9 10 11 12 5 4 2 1 21 6 22 20");
  });

  it("a chain that bites its tail ends where it does", () => {
    const third = storeAll(0, [30, 31, 30]);
    expect(order()).toBe("3 9 10 11 12 5 4 2 1 21 6 22 20 30 31");
    storeAll(first, [9, 10, 11]);
    storeAll(third, [31], 30);
    verifyIndex();
    removeHolder(third);
    expect(index.holders).toBe(2);
  });

  it("where the index is full, the entry used longest ago goes", () => {
    const before = order();
    expect(before).toBe("3 12 5 4 2 1 21 6 22 20 11 10 9");
    storeAll(second, [40, 41, 42]);
    expect(numEntries()).toBe(16);
    storeAll(second, [43]);
    expect(order()).toBe("12 5 4 2 1 21 6 22 20 11 10 9 42 41 40 43");
    expect(numEvicted()).toBe(1);
  });

  it("an overlap counts from the root and names the longest first", () => {
    storeAll(first, [40, 41]);
    expect(asked([40, 41, 42, 43])).toBe("0:4 0:2"); // slots of new holders are 0 here
    expect(asked([41, 42])).toBe("0:2 0:1");
    expect(asked([42, 41])).toBe("0:2");
    expect(asked([7, 40])).toBe("");
  });

  it("a chain of the whole length of the bound keeps its head", () => {
    storeAll(first, [50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67]);
    expect(order()).toBe("65 64 63 62 61 60 59 58 57 56 55 54 53 52 51 50");
    expect(holderAt(second).entries).toBe(0);
  });

  it("removed blocks go whatever their place in the chain, and unknown ones are passed over", () => {
    putHash(0, 52);
    putHash(1, 99);
    putHash(2, 50);
    removeBlocks(first, 3);
    expect(numEntries()).toBe(14);
    expect(numBlocks()).toBe(14);
    removeBlocks(second, 3);
    expect(numEntries()).toBe(14);
  });

  it("a limit of a holder lets its oldest entries go, and stays", () => {
    const gone = numEvicted();
    expect(limitHolder(first, 0, 12)).toBe(first);
    expect(order()).toBe("63 62 61 60 59 58 57 56 55 54 53 51");
    expect(numEvicted()).toBe(gone + 2);
    storeAll(first, [70]);
    expect(order()).toBe("62 61 60 59 58 57 56 55 54 53 51 70");
    const other = limitHolder(0, 0, 1);
    storeAll(other, [80, 81]);
    expect(holderAt(other).entries).toBe(1);
    removeHolder(other);
    limitHolder(first, 0, 16);
  });

  it("what is gone leaves its records to others", () => {
    clearHolder(first);
    expect(numEntries()).toBe(0);
    removeHolder(first);
    removeHolder(second);
    expect(used()).toBe(1);
    const before = untouched;
    const again = storeAll(0, [1, 2, 3, 4, 5, 6, 7, 8]);
    expect(untouched).toBe(before);
    removeHolder(again);
    expect(recycled).toBe(before - 1);
  });
});
