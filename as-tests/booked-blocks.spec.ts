import { book, countSole, settleAll } from "../assembly/booked-batch";
import { potential } from "../assembly/booked-potential";
import { booked, bookedEntry } from "../assembly/booked-records";
import { verifyBooked } from "../assembly/booked-verify";
import { scratch } from "../assembly/layout";
import { panic, panicCode } from "../assembly/panic";
import { numBlocks, numEntries } from "../assembly/prefix-batch";
import * as index from "../assembly/prefix-index";
import { holderAt, untouched, used } from "../assembly/prefix-records";
import { findEntry, findNode } from "../assembly/prefix-tables";
import { Panic, Status } from "../src/abi";
import { openIndex, putHashes } from "./prefix-support";

let first: u32 = 0;
let second: u32 = 0;

@inline function word(): i32 {
  return load<i32>(scratch);
}

/** Books a list on a holder, 0 for a new one. */
function add(number: u32, slot: u32, hashes: StaticArray<u64>): i32 {
  return book(number, slot, putHashes(hashes), 1, 1);
}

/** Takes a list back. */
function take(number: u32, hashes: StaticArray<u64>, waits: i32): i32 {
  return book(number, 0, putHashes(hashes), -1, -waits);
}

function settle(hashes: StaticArray<u64>): i32 {
  return settleAll(putHashes(hashes), -1);
}

function sole(number: u32, hashes: StaticArray<u64>): i32 {
  return countSole(number, putHashes(hashes));
}

/** Asks for a potential; pairs of slot and blocks, and the hot blocks. */
function asked(hashes: StaticArray<u64>, hot: f64): string {
  const length = putHashes(hashes);
  const count = potential(length, hot);
  let list = "";
  for (let pair = 0; pair < count; pair++) {
    const address = scratch + (<usize>(length + pair) << 3);
    list += `${load<u32>(address)}:${load<u32>(address, 4)} `;
  }
  return `${list}hot ${word()}`;
}

function expectFound(reason: Panic): void {
  expect(() => panic(Panic.None)).toThrow(); // forgets the last reason
  expect(() => verifyBooked()).toThrow("verifyBooked found nothing");
  expect(panicCode()).toBe(reason);
}

describe("booked blocks", () => {
  beforeAll(() => {
    openIndex(8, 8);
  });

  afterEach(() => {
    verifyBooked();
  });

  it("a booking counts the blocks that are new to its holder, and names the holder", () => {
    expect(add(0, 7, [1, 2, 3])).toBe(3);
    first = word();
    expect(add(first, 7, [1, 2, 4])).toBe(1);
    expect(<u32>word()).toBe(first);
    expect(add(0, 9, [1, 2, 1])).toBe(2);
    second = word();
    expect(numBlocks()).toBe(4);
    expect(numEntries()).toBe(6);
    expect(booked(findNode(1)).references).toBe(4);
    expect(booked(findNode(1)).waiting).toBe(4);
    expect(bookedEntry(findEntry(findNode(1), holderAt(second))).references).toBe(2);
  });

  it("a potential counts each holder's blocks in any list, and the leading hot ones", () => {
    expect(asked([1, 2, 3, 4], 3)).toBe("9:2 7:4 hot 2");
    expect(asked([3, 99, 1], 1)).toBe("7:2 9:1 hot 1");
    expect(asked([99, 1], 1)).toBe("9:1 7:1 hot 0");
    expect(asked([99], 1)).toBe("hot 0");
    expect(asked([1, 1, 4], Infinity)).toBe("9:2 7:3 hot 0");
  });

  it("sole counts what has one reference", () => {
    expect(sole(first, [1, 2, 3, 4, 4])).toBe(3);
    expect(sole(second, [1, 2])).toBe(1);
    expect(sole(second, [1, 3])).toBe(-Status.NotBooked);
    expect(word()).toBe(1);
  });

  it("a full table refuses a booking whole", () => {
    const before = used();
    expect(add(second, 9, [1, 5, 6, 7])).toBe(-Status.BlocksExhausted);
    expect(word()).toBe(3);
    expect(add(0, 3, [5, 6, 7])).toBe(-Status.BlocksExhausted);
    expect(word()).toBe(2);
    expect(used()).toBe(before);
    expect(index.holders).toBe(2);
    expect(booked(findNode(1)).waiting).toBe(4);
  });

  it("settling takes from those who wait, all or none", () => {
    expect(settle([1, 2, 1])).toBe(Status.Ok);
    expect(booked(findNode(1)).waiting).toBe(2);
    expect(settle([1, 3, 3])).toBe(-Status.NotBooked);
    expect(word()).toBe(2);
    expect(booked(findNode(3)).waiting).toBe(1);
    expect(settle([1, 98])).toBe(-Status.NotBooked);
    expect(booked(findNode(1)).waiting).toBe(2);
  });

  it("what is not booked so is not taken back, and nothing has changed", () => {
    expect(take(second, [1, 1, 2, 2], 0)).toBe(-Status.NotBooked);
    expect(word()).toBe(3);
    expect(numEntries()).toBe(6);
    expect(take(first, [3, 4], 0)).toBe(-Status.NotBooked); // both still wait
    expect(word()).toBe(0);
    expect(take(first, [3, 1, 2, 3], 1)).toBe(-Status.NotBooked);
    expect(word()).toBe(3);
    expect(bookedEntry(findEntry(findNode(3), holderAt(first))).references).toBe(1);
  });

  it("every account is checked", () => {
    const node = booked(findNode(1));
    const entry = findEntry(findNode(1), holderAt(first));
    node.references++;
    expectFound(Panic.References);
    node.references--;
    node.waiting += 3;
    expectFound(Panic.References);
    node.waiting -= 3;
    holderAt(first).mark = 1;
    index.holders++;
    expectFound(Panic.Counters);
    index.holders--;
    holderAt(first).mark = 0;
    const references = bookedEntry(entry).references;
    bookedEntry(entry).references = 0;
    expectFound(Panic.References);
    bookedEntry(entry).references = references;
  });

  it("a holder goes with its last block, and leaves its records to others", () => {
    expect(take(second, [1, 2, 1], 0)).toBe(2);
    expect(word()).toBe(0);
    expect(index.holders).toBe(1);
    expect(take(first, [1, 2, 3], 1)).toBe(1);
    expect(<u32>word()).toBe(first);
    expect(take(first, [1, 2, 4], 1)).toBe(3);
    expect(word()).toBe(0);
    expect(numEntries()).toBe(0);
    expect(numBlocks()).toBe(0);
    expect(used()).toBe(1);
    const before = untouched;
    expect(add(0, 0, [1, 2])).toBe(2);
    expect(untouched).toBe(before);
    expect(take(word(), [1, 2], 1)).toBe(2);
  });
});
