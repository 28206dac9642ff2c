import {
  allocateCached,
  allocatePrivate,
  cancel,
  create,
  makeScratch,
  match,
  numActive,
  numInactive,
  release,
  reserve,
} from "../assembly/core";
import { layouts, pagesWanted, scratch, words } from "../assembly/layout";
import { slots, vacant } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Status } from "../src/abi";
import { fingerprint, hashAt, open, putHash } from "./support";

// The arena starts at page 256, so one page is left: 1,024 slots, their index and 3,072 words fill it exactly.
const PAGES: u32 = 257;
const SLOTS = 1024;
const WORDS = 3072;
const CAPACITY = 2000;

let before: u64 = 0;

describe("layout under a limit", () => {
  it("a pool that its limit has no page for is refused, and nothing has grown", () => {
    expect(open(CAPACITY, PAGES - 1)).toBe(-Status.MemoryLimit);
    expect(pagesWanted()).toBe(PAGES);
    expect(memory.size()).toBeLessThan(256);
    expect(words).toBe(0);
    expect(slots).toBe(0);
    expect(layouts).toBe(0);
  });

  it("after a refusal the instance can still open a pool", () => {
    expect(create(CAPACITY, PAGES)).toBe(0);
    expect(memory.size()).toBe(PAGES);
    verify();
  });

  it("slots grow up to the limit and not beyond", () => {
    expect(makeScratch(WORDS / 2)).toBe(0);
    expect(reserve(0, SLOTS - 1)).toBe(0);
    expect(slots).toBe(SLOTS);
    before = fingerprint();
    expect(reserve(0, 1)).toBe(-Status.MemoryLimit);
    expect(pagesWanted()).toBe(PAGES + 1);
    expect(fingerprint()).toBe(before);
    cancel(0, SLOTS - 1);
    expect(reserve(0, SLOTS)).toBe(-Status.MemoryLimit);
    expect(vacant()).toBe(SLOTS - 1);
    verify();
  });

  it("a pool at its limit goes on with the slots that it has", () => {
    for (let round = 0; round < 2; round++) {
      expect(reserve(0, SLOTS - 1)).toBe(0);
      allocatePrivate(SLOTS - 1);
      expect(numActive()).toBe(SLOTS - 1);
      verify();
      expect(release(SLOTS - 1, 0)).toBe(0);
      expect(numActive()).toBe(0);
      verify();
    }
  });

  it("the scratch page grows up to the limit and not beyond", () => {
    for (let position = 0; position < WORDS / 2; position++) putHash(position, <u64>position << 33);
    expect(makeScratch(WORDS)).toBe(0);
    expect(scratch + <usize>words * 8).toBe(<usize>PAGES << 16);
    before = fingerprint();
    expect(makeScratch(WORDS + 1)).toBe(-Status.MemoryLimit);
    expect(pagesWanted()).toBe(PAGES + 1);
    expect(makeScratch(1 << 24)).toBe(-Status.MemoryLimit);
    expect(fingerprint()).toBe(before);
    for (let position = 0; position < WORDS / 2; position++) assert(hashAt(position) == <u64>position << 33);
    verify();
  });

  it("only the capacity evicts: a pool at its limit keeps all that is cached", () => {
    expect(reserve(0, SLOTS - 1)).toBe(0);
    for (let position = 0; position < SLOTS - 1; position++) putHash(SLOTS - 1 + position, <u64>position);
    expect(allocateCached(SLOTS - 1)).toBe(SLOTS - 1);
    expect(release(SLOTS - 1, 0)).toBe(0);
    expect(numInactive()).toBe(SLOTS - 1);
    before = fingerprint();
    expect(reserve(0, 1)).toBe(-Status.MemoryLimit);
    expect(reserve(0, CAPACITY)).toBe(-Status.MemoryLimit);
    expect(fingerprint()).toBe(before);
    for (let position = 0; position < SLOTS - 1; position++) putHash(position, <u64>position);
    expect(match(SLOTS - 1)).toBe(SLOTS - 1);
    verify();
  });

  it("a reservation without fresh blocks needs no memory", () => {
    putHash(0, 5);
    putHash(1, 6);
    expect(reserve(2, 0)).toBe(0);
    expect(numActive()).toBe(2);
    verify();
    cancel(2, 0);
    expect(numActive()).toBe(0);
    verify();
  });

  it("an instance holds one pool", () => {
    before = fingerprint();
    expect(() => {
      create(1, PAGES);
    }).toThrow();
    expect(fingerprint()).toBe(before);
  });
});
