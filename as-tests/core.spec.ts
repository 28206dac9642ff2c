import {
  activate,
  allocateCached,
  allocatePrivate,
  cancel,
  create,
  layoutCount,
  makeScratch,
  numActive,
  numInactive,
  numReferences,
  panicCode,
  release,
  reserve,
  scratchAddress,
  scratchWords,
} from "../assembly/core";
import { scratch, words } from "../assembly/layout";
import { capacity } from "../assembly/pool";
import { slots } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { PAGES_MAX, Panic } from "../src/abi";
import { drop, evictAll, hashAt, idAt, newCached, newPrivate, open, putHash, putId } from "./support";

let id: f64 = 0;
let other: f64 = 0;

function expectCounts(active: u32, references: u32, inactive: u32): void {
  expect(numActive()).toBe(active, "active");
  expect(numReferences()).toBe(references, "references");
  expect(numInactive()).toBe(inactive, "inactive");
  verify();
}

describe("core", () => {
  it("a pool has at least one block, and less blocks than there are slot numbers", () => {
    expect(() => {
      create(0, PAGES_MAX);
    }).toThrow("no block");
    expect(() => {
      create(4096, PAGES_MAX);
    }).toThrow("one too many");
    expect(() => {
      create(u32.MAX_VALUE, PAGES_MAX);
    }).toThrow("a negative number");
    expect(slots).toBe(0);
    expect(open(4095)).toBe(0);
    expect(capacity).toBe(4095);
    expect(panicCode()).toBe(Panic.None);
    expectCounts(0, 0, 0);
  });

  it("an instance holds one pool", () => {
    expect(() => {
      create(4094, PAGES_MAX);
    }).toThrow();
    expect(capacity).toBe(4095);
  });

  it("the scratch page is where the core says, and every change of it counts", () => {
    expect(scratchAddress()).toBe(scratch);
    expect(scratchWords()).toBe(256);
    expect(layoutCount()).toBe(1);
    expect(makeScratch(256)).toBe(0);
    expect(layoutCount()).toBe(1);
    expect(makeScratch(257)).toBe(0);
    expect(layoutCount()).toBe(2);
    expect(scratchWords()).toBe(512);
    expect(scratchWords()).toBe(words);
  });

  it("reserved room is active before it is used, and is no reference", () => {
    expect(reserve(0, 3)).toBe(0);
    expectCounts(3, 0, 0);
    allocatePrivate(1);
    id = idAt(0);
    expectCounts(3, 1, 0);
    cancel(0, 2);
    expectCounts(1, 1, 0);
  });

  it("a private copy that is released is gone", () => {
    drop(id);
    expectCounts(0, 0, 0);
  });

  it("a cached copy is active while it has a reference and inactive from then on", () => {
    id = newCached(1);
    expectCounts(1, 1, 0);
    drop(id);
    expectCounts(0, 0, 1);
  });

  it("a pin makes a copy active and is no reference until it is activated", () => {
    putHash(0, 1);
    putHash(1, 1);
    expect(reserve(2, 0)).toBe(0);
    expectCounts(1, 0, 0);
    activate(2);
    expectCounts(1, 2, 0);
    drop(id);
    expectCounts(1, 1, 0);
    drop(id);
    expectCounts(0, 0, 1);
  });

  it("copies count one by one, references holder by holder", () => {
    other = newCached(1);
    id = newPrivate();
    expectCounts(2, 2, 1);
    putHash(0, 1);
    expect(reserve(1, 0)).toBe(0);
    expectCounts(3, 2, 0);
    cancel(1, 0);
    expectCounts(2, 2, 1);
    drop(other);
    drop(id);
    expectCounts(0, 0, 2);
    evictAll();
    expectCounts(0, 0, 0);
  });

  it("a full pool counts every block", () => {
    for (let filled = 0; filled < 4095; filled += 195) {
      expect(reserve(0, 195)).toBe(0);
      for (let position = 0; position < 195; position++) putHash(195 + position, <u64>(filled + position));
      expect(allocateCached(195)).toBe(195);
      if (filled == 0) id = idAt(0);
      else expect(release(195, 0)).toBe(0);
    }
    expectCounts(195, 195, 3900);
  });

  it("a reservation makes room on the page for the hashes that it evicts", () => {
    expect(scratchWords()).toBe(512);
    putHash(0, 195);
    putHash(1, 4094);
    expect(reserve(2, 3898)).toBe(3898);
    expect(scratchWords()).toBe(3900);
    expect(hashAt(2)).toBe(196);
    expect(hashAt(3899)).toBe(4093);
    expectCounts(4095, 195, 0);
    cancel(2, 3898);
    putId(0, id);
    expect(release(1, 0)).toBe(0);
    expectCounts(194, 194, 3);
  });
});
