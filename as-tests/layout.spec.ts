import { allocateCached, match, release, reserve } from "../assembly/core";
import { find, indexBytes } from "../assembly/hash-index";
import { layouts, makeRoom, makeWords, pagesWanted, refuseGrowth, scratch, words } from "../assembly/layout";
import { inactive } from "../assembly/lru";
import { ARENA, SLOT_BYTES, slots, some, vacant } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Status, WORD_BYTES } from "../src/abi";
import { fingerprint, hashAt, newCached, open, putHash, victims } from "./support";

const CAPACITY: u32 = 4000;
const HASHES: u64 = 60;

let before: u64 = 0;

// Hashes as a real trace has them: all 64 bits vary.
function spread(number: u64): u64 {
  return (number + 1) * 0xd1342543de82ef95;
}

function fill(length: i32): void {
  for (let position = 0; position < length; position++) putHash(position, ~(<u64>position << 17));
}

/** Counts the leading words that still hold what `fill` wrote. */
function kept(length: i32): i32 {
  let position = 0;
  while (position < length && hashAt(position) == ~(<u64>position << 17)) position++;
  return position;
}

/** Caches one copy, two or three of each hash, every other one inactive, and at last one more hash. */
function populate(): void {
  for (let round: u64 = 0; round < 3; round++) {
    for (let number: u64 = round; number < HASHES; number++) {
      if (number % 3 < round) continue;
      newCached(spread(number));
      if (number & 1) release(1, 0);
    }
  }
  newCached(spread(HASHES));
}

/** One number for the chains of all hashes: which copies, and in which order. */
function chains(): u64 {
  let sum: u64 = 0;
  for (let number: u64 = 0; number <= HASHES; number++) {
    for (let slot = find(spread(number)); some(slot); slot = slot.younger) sum = (sum + slot.number) * 0x100000001b3;
    sum = (sum + 1) * 0x100000001b3;
  }
  return sum;
}

let firstChains: u64 = 0;
let firstVictims = "";

function expectSame(): void {
  expect(chains()).toBe(firstChains);
  expect(victims()).toBe(firstVictims);
  verify();
}

describe("layout", () => {
  beforeAll(() => {
    open(CAPACITY);
  });

  it("a large pool starts small", () => {
    expect(slots).toBe(256);
    expect(words).toBe(256);
    expect(layouts).toBe(1);
    verify();
  });

  it("slots, index and scratch page follow each other without a gap", () => {
    expect(scratch).toBe(ARENA + 256 * SLOT_BYTES + indexBytes(256));
    expect(scratch % 64).toBe(0);
  });

  it("the memory ends with the page that the scratch page ends in", () => {
    expect(memory.size()).toBe(<i32>((scratch + words * WORD_BYTES + 65535) / 65536));
    expect(pagesWanted()).toBe(<u32>memory.size());
  });

  it("what fits changes nothing", () => {
    before = fingerprint();
    expect(makeWords(0)).toBe(Status.Ok);
    expect(makeWords(256)).toBe(Status.Ok);
    expect(makeRoom(256, 0, CAPACITY + 1)).toBe(Status.Ok);
    expect(fingerprint()).toBe(before);
  });

  it("a longer batch doubles the scratch page, which stays where it is and keeps what it holds", () => {
    const page = scratch;
    fill(256);
    expect(makeWords(257)).toBe(Status.Ok);
    expect(words).toBe(512);
    expect(scratch).toBe(page);
    expect(slots).toBe(256);
    expect(layouts).toBe(2);
    expect(kept(256)).toBe(256);
    verify();
  });

  it("a batch longer than that gets what it needs and no more", () => {
    expect(makeWords(5000)).toBe(Status.Ok);
    expect(words).toBe(5000);
    expect(kept(256)).toBe(256);
    verify();
  });

  it("the scratch page never shrinks", () => {
    expect(makeWords(1)).toBe(Status.Ok);
    expect(words).toBe(5000);
  });

  it("slots double, and every copy is found in the place that it had in its chain and in the list", () => {
    populate();
    firstChains = chains();
    firstVictims = victims();
    expect(inactive).toBe(60);
    verify();
    const page = scratch;
    fill(5000);
    expect(makeRoom(0, 1, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(512);
    expect(scratch).toBe(page + 256 * SLOT_BYTES + indexBytes(512) - indexBytes(256));
    expect(layouts).toBe(4);
    expect(kept(5000)).toBe(5000);
    expectSame();
  });

  it("a growth that the runtime refuses changes nothing, and the next one succeeds", () => {
    const pages = memory.size();
    before = fingerprint();
    refuseGrowth(1);
    expect(makeRoom(0, 1, CAPACITY + 1)).toBe(Status.GrowthRefused);
    expect(pagesWanted()).toBe(<u32>pages + 1);
    expect(memory.size()).toBe(pages);
    expect(fingerprint()).toBe(before);
    expect(kept(5000)).toBe(5000);
    expectSame();
    expect(makeRoom(0, 1, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(1024);
    expect(memory.size()).toBe(pages + 1);
    expect(kept(5000)).toBe(5000);
    expectSame();
  });

  it("slots and scratch page grow together", () => {
    expect(makeRoom(5001, 1, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(2048);
    expect(words).toBe(10000);
    expect(layouts).toBe(6);
    expect(kept(5000)).toBe(5000);
    expectSame();
  });

  it("slots stop doubling where a full pool has enough, in a whole pair", () => {
    expect(makeRoom(0, 1, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(4002);
    expectSame();
  });

  it("the k-th growth is refused, and growths that need no memory do not count", () => {
    fill(5000);
    for (let k = 1; k <= 3; k++) {
      refuseGrowth(k);
      for (let granted = 1; granted < k; granted++) {
        expect(makeWords(words + 1)).toBe(Status.Ok);
        expect(makeWords(words)).toBe(Status.Ok);
      }
      before = fingerprint();
      expect(makeWords(words + 1)).toBe(Status.GrowthRefused);
      expect(fingerprint()).toBe(before);
      expect(kept(5000)).toBe(5000);
      expectSame();
    }
    refuseGrowth(0);
    expect(makeWords(words + 1)).toBe(Status.Ok);
    expectSame();
  });

  it("beyond a full pool slots grow only as far as they must", () => {
    expect(makeRoom(0, 5, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(4008);
    expectSame();
  });

  it("there are no more slots than numbers", () => {
    before = fingerprint();
    expect(makeRoom(0, 4096 - 4008 + 1, CAPACITY + 1)).toBe(Status.IdsExhausted);
    expect(makeRoom(0, u32.MAX_VALUE, CAPACITY + 1)).toBe(Status.IdsExhausted);
    expect(fingerprint()).toBe(before);
    expect(makeRoom(0, 4096 - 4008, CAPACITY + 1)).toBe(Status.Ok);
    expect(slots).toBe(4096);
    expect(makeRoom(0, 1, CAPACITY + 1)).toBe(Status.IdsExhausted);
    expect(makeRoom(<usize>words, 0, CAPACITY + 1)).toBe(Status.Ok);
    expectSame();
  });

  it("a pool that has grown can be filled", () => {
    const blocks = CAPACITY - 121;
    expect(vacant()).toBe(4095 - 121);
    expect(reserve(0, blocks)).toBe(0);
    for (let position: u32 = 0; position < blocks; position++) putHash(blocks + position, spread(1000 + position));
    expect(allocateCached(blocks)).toBe(blocks);
    verify();
    for (let position: u32 = 0; position < blocks; position++) putHash(position, spread(1000 + position));
    expect(match(blocks)).toBe(blocks);
    expectSame();
  });
});
