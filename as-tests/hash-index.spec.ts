import {
  distanceOf,
  entries,
  erase,
  find,
  findOrInsert,
  indexBytes,
  insert,
  passes,
  placeIndex,
  rename,
} from "../assembly/hash-index";
import { ARENA, SLOT_BYTES, Slot, at, slots, some } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { open } from "./support";

// 63 blocks and the sentinel are 64 slots, so the index has 8 buckets. The mixing of hashes is repeated here, as the
// head of hash-index.ts describes it, to find hashes that collide. The index reads nothing of a slot but its hash:
// the slots of these tests are never taken, so that `verify` expects none of them once the index is empty.
const CAPACITY: u32 = 63;
const BUCKETS: u32 = 8;
const PLACES: u32 = 12;
const GOLDEN: u64 = 0x9e3779b97f4a7c15;

// The bucket and the tag of the crowd in most tests.
const BUCKET: u32 = 3;
const TAG: u32 = 0x5a;

const NOWHERE: u32 = 100;

function mixed(hash: u64): u64 {
  return (hash ^ (hash >> 32)) * GOLDEN;
}

function bucketOf(hash: u64): u32 {
  return <u32>(mixed(hash) >> 32) & (BUCKETS - 1);
}

function byteOf(hash: u64): u32 {
  return <u32>(mixed(hash) >> 24) & 0xff;
}

/** The first hash from `from` on with a bucket and a byte for its tag. */
function colliding(from: u64, bucket: u32, byte: u32): u64 {
  let hash = from;
  while (bucketOf(hash) != bucket || byteOf(hash) != byte) hash++;
  return hash;
}

function bucketAddress(bucket: u32): usize {
  return ARENA + <usize>slots * SLOT_BYTES + <usize>bucket * 64;
}

function passedAt(bucket: u32): u32 {
  return load<u32>(bucketAddress(bucket), 12);
}

/** The bucket where the only entry of a slot is; `NOWHERE` and more if it has none or several. */
function bucketHolding(slot: Slot): u32 {
  let holding: u32 = 0;
  let count: u32 = 0;
  for (let bucket: u32 = 0; bucket < BUCKETS; bucket++) {
    for (let place: usize = 0; place < <usize>PLACES; place++) {
      const address = bucketAddress(bucket);
      if (load<u8>(address + place) == 0 || load<Slot>(address + place * 4, 16) != slot) continue;
      holding = bucket;
      count++;
    }
  }
  return count == 1 ? holding : NOWHERE + count;
}

/** The slot of a number with a hash. */
function holding(number: u32, hash: u64): Slot {
  const slot = at(number);
  slot.hash = hash;
  return slot;
}

function add(number: u32, hash: u64): Slot {
  const slot = holding(number, hash);
  insert(slot);
  return slot;
}

/** The hash of the n-th member of a crowd. */
function nth(count: u32): u64 {
  let hash: u64 = 0;
  for (let left = count; left > 0; left--) hash = colliding(hash + 1, BUCKET, TAG);
  return hash;
}

/** Adds hashes of one bucket and one tag for the slots from `first` to `last`. */
function crowd(first: u32, last: u32, bucket: u32 = BUCKET, byte: u32 = TAG): void {
  let hash: u64 = 0;
  for (let number = first; number <= last; number++, hash++) {
    hash = colliding(hash, bucket, byte);
    add(number, hash);
  }
}

function disperse(first: u32, last: u32): void {
  for (let number = first; number <= last; number++) erase(at(number));
}

/** Counts the slots that their hash leads to. */
function foundOf(first: u32, last: u32): u32 {
  let found: u32 = 0;
  for (let number = first; number <= last; number++) found += u32(find(at(number).hash) == at(number));
  return found;
}

function distancesOf(first: u32, last: u32): u32 {
  let sum: u32 = 0;
  for (let number = first; number <= last; number++) sum += distanceOf(at(number));
  return sum;
}

function expectEmpty(): void {
  expect(entries).toBe(0);
  expect(passes()).toBe(0);
  verify();
}

describe("hash index", () => {
  beforeAll(() => {
    open(CAPACITY);
    assert(indexBytes(slots) == <usize>BUCKETS * 64); // what follows writes to buckets by their address
  });

  // What a failed test has left would make the next ones search for ever.
  beforeEach(() => {
    placeIndex(bucketAddress(0), <usize>BUCKETS * 64);
  });

  it("an index has a bucket for at most eight slots and, from two buckets on, for more than four", () => {
    expect(indexBytes(1)).toBe(64);
    expect(indexBytes(8)).toBe(64);
    expect(indexBytes(9)).toBe(128);
    for (let count: u32 = 9; count < 3000; count++) {
      const buckets = <u32>(indexBytes(count) / 64);
      assert(popcnt(buckets) == 1 && buckets * 8 >= count && buckets * 4 < count);
    }
    expect(indexBytes(1 << 24)).toBe(1 << 27);
    expect(indexBytes(slots)).toBe(<usize>BUCKETS * 64);
  });

  it("a hash without an entry is not found", () => {
    expect(some(find(0))).toBe(false);
    expect(some(find(1))).toBe(false);
    expect(some(find(u64.MAX_VALUE))).toBe(false);
    expectEmpty();
  });

  it("a hash is found from when it is added until it is removed", () => {
    const slot = add(1, 0);
    expect(find(0) == slot).toBe(true);
    expect(entries).toBe(1);
    erase(slot);
    expect(some(find(0))).toBe(false);
    expectEmpty();
  });

  it("an entry is in the bucket that the upper half of the product names", () => {
    for (let number: u32 = 1; number < 40; number++) {
      const slot = add(number, <u64>number * 0x123456789abcdef);
      expect(bucketHolding(slot)).toBe(bucketOf(slot.hash));
    }
    disperse(1, 39);
    expectEmpty();
  });

  it("hashes that differ in one half, in one bit or in the order of their halves are told apart", () => {
    add(1, 0);
    add(2, u64.MAX_VALUE);
    add(3, 0xffffffff);
    add(4, 0xffffffff00000000);
    add(5, 1);
    add(6, 0x100000000);
    add(7, 0x100000001);
    add(8, 0x8000000000000000);
    expect(foundOf(1, 8)).toBe(8);
    expect(some(find(0x80000000))).toBe(false);
    expect(some(find(2))).toBe(false);
    disperse(1, 8);
    expectEmpty();
  });

  it("hashes with the same bucket and the same tag are told apart", () => {
    crowd(1, PLACES);
    expect(foundOf(1, PLACES)).toBe(PLACES);
    expect(distancesOf(1, PLACES)).toBe(0);
    expect(some(find(colliding(at(PLACES).hash + 1, BUCKET, TAG)))).toBe(false);
    disperse(1, PLACES);
    expectEmpty();
  });

  it("a hash whose tag would mean an empty place gets another, which others may have too", () => {
    const a = add(1, colliding(0, BUCKET, 0));
    const b = add(2, colliding(0, BUCKET, 1));
    expect(bucketHolding(a)).toBe(BUCKET);
    expect(bucketHolding(b)).toBe(BUCKET);
    expect(foundOf(1, 2)).toBe(2);
    erase(a);
    expect(find(b.hash) == b).toBe(true);
    erase(b);
    expectEmpty();
  });

  it("the thirteenth entry of a bucket goes to the next, and the bucket remembers that it passed", () => {
    crowd(1, PLACES + 1);
    expect(bucketHolding(at(PLACES))).toBe(BUCKET);
    expect(bucketHolding(at(PLACES + 1))).toBe(BUCKET + 1);
    expect(passedAt(BUCKET)).toBe(1);
    expect(passes()).toBe(1);
    expect(distanceOf(at(PLACES + 1))).toBe(1);
    expect(foundOf(1, PLACES + 1)).toBe(PLACES + 1);
    disperse(1, PLACES + 1);
    expectEmpty();
  });

  it("a search goes on from a bucket while an entry that passed it is there", () => {
    crowd(1, PLACES + 1);
    const last = at(PLACES + 1);
    erase(at(1));
    expect(passedAt(BUCKET)).toBe(1);
    expect(find(last.hash) == last).toBe(true);
    erase(last);
    expect(passedAt(BUCKET)).toBe(0);
    expect(some(find(last.hash))).toBe(false);
    disperse(2, PLACES);
    expectEmpty();
  });

  it("a place that was freed is taken before one in the next bucket", () => {
    crowd(1, PLACES + 1);
    erase(at(1));
    insert(at(1));
    expect(bucketHolding(at(1))).toBe(BUCKET);
    expect(passedAt(BUCKET)).toBe(1);
    disperse(1, PLACES + 1);
    expectEmpty();
  });

  it("an entry passes as many full buckets as it must", () => {
    crowd(1, 2 * PLACES + 1);
    expect(bucketHolding(at(2 * PLACES + 1))).toBe(BUCKET + 2);
    expect(distanceOf(at(2 * PLACES + 1))).toBe(2);
    expect(passedAt(BUCKET)).toBe(PLACES + 1);
    expect(passedAt(BUCKET + 1)).toBe(1);
    disperse(1, 2 * PLACES + 1);
    expectEmpty();
  });

  it("whoever leaves a cluster of three buckets, all others stay findable", () => {
    const count: u32 = 2 * PLACES + 1;
    crowd(1, count);
    for (let number: u32 = 1; number <= count; number++) {
      const leaving = at(number);
      erase(leaving);
      expect(some(find(leaving.hash))).toBe(false);
      expect(foundOf(1, count)).toBe(count - 1);
      insert(leaving);
      expect(foundOf(1, count)).toBe(count);
      expect(passes()).toBe(distancesOf(1, count));
    }
    disperse(1, count);
    expectEmpty();
  });

  it("whatever the order in which a cluster goes, no pass is left behind", () => {
    const count: u32 = 2 * PLACES + 1;
    for (let stride: u32 = 1; stride < count; stride++) {
      if (stride % 5 == 0) continue; // it shares a divisor with 25, so it does not reach every member
      crowd(1, count);
      for (let left = count, member: u32 = 0; left > 0; left--, member = (member + stride) % count) {
        erase(at(member + 1));
        expect(foundOf(1, count)).toBe(left - 1);
      }
      expect(passes()).toBe(0);
    }
    expectEmpty();
  });

  it("two clusters that run into each other do not hide each other's entries", () => {
    crowd(1, PLACES + 3);
    crowd(31, 30 + PLACES, BUCKET + 1);
    expect(foundOf(31, 30 + PLACES)).toBe(PLACES);
    expect(passedAt(BUCKET + 1)).toBe(3);
    disperse(1, PLACES + 3);
    expect(foundOf(31, 30 + PLACES)).toBe(PLACES);
    expect(passedAt(BUCKET)).toBe(0);
    expect(passedAt(BUCKET + 1)).toBe(3);
    disperse(31, 30 + PLACES);
    expectEmpty();
  });

  it("behind the last bucket comes the first", () => {
    crowd(1, PLACES + 1, BUCKETS - 1);
    const last = at(PLACES + 1);
    expect(bucketHolding(last)).toBe(0);
    expect(passedAt(BUCKETS - 1)).toBe(1);
    expect(distanceOf(last)).toBe(1);
    erase(at(4));
    expect(find(last.hash) == last).toBe(true);
    erase(last);
    insert(at(4));
    disperse(1, PLACES);
    expectEmpty();
  });

  it("an index as full as its pool has room even for hashes of one bucket", () => {
    crowd(1, CAPACITY, BUCKETS - 2);
    expect(entries).toBe(CAPACITY);
    expect(foundOf(1, CAPACITY)).toBe(CAPACITY);
    expect(distanceOf(at(CAPACITY))).toBe(5);
    expect(passes()).toBe(PLACES * (0 + 1 + 2 + 3 + 4) + (CAPACITY - 5 * PLACES) * 5);
    disperse(1, CAPACITY);
    expectEmpty();
  });

  it("a renamed entry leads to the other copy and stays where it was", () => {
    crowd(1, PLACES + 1);
    const near = at(5);
    const far = at(PLACES + 1);
    const nearHeir = holding(40, near.hash);
    const farHeir = holding(41, far.hash);
    rename(near, nearHeir);
    rename(far, farHeir);
    expect(find(near.hash) == nearHeir).toBe(true);
    expect(find(far.hash) == farHeir).toBe(true);
    expect(bucketHolding(near)).toBe(NOWHERE);
    expect(bucketHolding(far)).toBe(NOWHERE);
    expect(bucketHolding(nearHeir)).toBe(BUCKET);
    expect(bucketHolding(farHeir)).toBe(BUCKET + 1);
    expect(passes()).toBe(1);
    expect(entries).toBe(PLACES + 1);
    rename(nearHeir, near);
    rename(farHeir, far);
    disperse(1, PLACES + 1);
    expectEmpty();
  });

  it("a copy whose hash has an entry finds it, any other one makes it", () => {
    for (let number: u32 = 1; number <= PLACES + 2; number++) {
      expect(some(findOrInsert(holding(number, nth(number))))).toBe(false);
      expect(entries).toBe(number);
      expect(findOrInsert(holding(40, nth(number))) == at(number)).toBe(true);
      expect(entries).toBe(number);
      expect(bucketHolding(at(number))).toBe(BUCKET + u32(number > PLACES));
    }
    expect(passes()).toBe(2);
    expect(bucketHolding(at(40))).toBe(NOWHERE);
    erase(at(1)); // now there is a place before the entries that passed
    expect(findOrInsert(holding(40, nth(PLACES + 2))) == at(PLACES + 2)).toBe(true);
    expect(some(findOrInsert(at(1)))).toBe(false);
    expect(bucketHolding(at(1))).toBe(BUCKET);
    expect(passes()).toBe(2);
    disperse(1, PLACES + 2);
    expectEmpty();
  });

  it("an entry is reached by its copy, not by its hash", () => {
    const first = add(1, 77);
    holding(2, 77);
    expect(() => erase(at(2))).toThrow("no entry names it");
    expect(() => rename(at(2), at(3))).toThrow("no entry names it");
    expect(() => {
      distanceOf(at(2));
    }).toThrow("no entry names it");
    expect(find(77) == first).toBe(true);
    expect(entries).toBe(1);
    erase(first);
    expectEmpty();
  });

  it("an index starts on a cache line and is a power of two long", () => {
    expect(() => placeIndex(bucketAddress(0) + 32, 64)).toThrow("its buckets would straddle lines");
    expect(() => placeIndex(bucketAddress(0), 192)).toThrow("three buckets have no mask");
    expectEmpty();
  });

  it("an index that is placed anew is empty, whatever the memory held", () => {
    memory.fill(bucketAddress(0), 0xff, <usize>BUCKETS * 64);
    placeIndex(bucketAddress(0), <usize>BUCKETS * 64);
    expect(passes()).toBe(0);
    expect(some(find(0))).toBe(false);
    expectEmpty();
    crowd(1, 3);
    placeIndex(bucketAddress(0), <usize>BUCKETS * 64);
    expect(foundOf(1, 3)).toBe(0);
    expectEmpty();
  });
});
