import { reserve } from "../assembly/core";
import * as hashIndex from "../assembly/hash-index";
import * as layout from "../assembly/layout";
import * as lru from "../assembly/lru";
import * as pool from "../assembly/pool";
import * as slots from "../assembly/slots";
import { ACTIVE, INACTIVE, PRIVATE, Slot } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Panic } from "../src/abi";
import { drop, expectFound, fingerprint, live, newCached, newPrivate, open, putHash } from "./support";

// Each test breaks one thing in a sound pool, sees that `verify` finds it, and mends it.

const CHAIN: u64 = 100;

let sound: u64 = 0;
let oldest: Slot = slots.nil();
let middle: Slot = slots.nil();
let youngest: Slot = slots.nil();
let idle: Slot = slots.nil();
let idler: Slot = slots.nil();
let idlest: Slot = slots.nil();
let own: Slot = slots.nil();
let single: Slot = slots.nil();

/** The first bucket of the index with an entry, and the first entry in it. */
let bucket: usize = 0;
let place: usize = 0;

function findEntry(): void {
  bucket = layout.scratch - hashIndex.indexBytes(slots.slots);
  while (load<u32>(bucket) == 0) bucket += 64;
  place = bucket;
  while (load<u8>(place) == 0) place++;
}

function expectSound(): void {
  verify();
  expect(fingerprint()).toBe(sound);
}

describe("verify", () => {
  beforeAll(() => {
    open(20);
    oldest = live(newCached(CHAIN));
    middle = live(newCached(CHAIN));
    youngest = live(newCached(CHAIN));
    single = live(newCached(4));
    const ids = [newCached(1), newCached(2), newCached(3)];
    idle = live(ids[0]);
    idler = live(ids[1]);
    idlest = live(ids[2]);
    for (let number = 0; number < 3; number++) drop(ids[number]);
    own = live(newPrivate());
    own.hash = 0;
    own.elder = slots.nil();
    own.younger = slots.nil();
    const gone = [newPrivate(), newPrivate(), newPrivate()];
    for (let number = 0; number < 3; number++) drop(gone[number]);
    putHash(0, 4);
    reserve(1, 2); // a pin and two blocks of room
    findEntry();
    sound = fingerprint();
  });

  it("a sound pool passes, and verify changes nothing", () => {
    expectSound();
    expect(single.pins).toBe(1);
    expect(slots.recycled).toBe(3);
    expect(lru.inactive).toBe(3);
  });

  it("layout: the scratch page lies behind the index", () => {
    layout.scratch += 64;
    expectFound(Panic.Layout);
    layout.scratch -= 64;
    slots.slots += 2;
    expectFound(Panic.Layout);
    slots.slots -= 2;
    expectSound();
  });

  it("layout: the scratch page ends within the memory", () => {
    const words = layout.words;
    layout.words = 1 << 29;
    expectFound(Panic.Layout);
    layout.words = ((<usize>memory.size() << 16) - layout.scratch) / 8 + 1;
    expectFound(Panic.Layout);
    layout.words--;
    verify();
    layout.words = words;
    expectSound();
  });

  it("layout: no more slots are used than there are", () => {
    const untouched = slots.untouched;
    slots.untouched = slots.slots + 1;
    expectFound(Panic.Layout);
    slots.untouched = 0;
    expectFound(Panic.Layout);
    slots.untouched = untouched;
    expectSound();
  });

  it("slots: no claim stays between calls", () => {
    youngest.claims = 1;
    expectFound(Panic.Slots);
    youngest.claims = 0;
    slots.freed.claims = 1;
    expectFound(Panic.Slots);
    slots.freed.claims = 0;
    expectSound();
  });

  it("slots: no generation is beyond the last", () => {
    const stamp = youngest.stamp;
    youngest.stamp = (9 << 2) | ACTIVE;
    expectFound(Panic.Slots);
    youngest.stamp = stamp;
    expectSound();
  });

  it("slots: an active copy has a reference or a pin", () => {
    single.refs = 0;
    single.pins = 0;
    expectFound(Panic.Slots);
    single.refs = 1;
    single.pins = 1;
    expectSound();
  });

  it("slots: retired slots are counted", () => {
    slots.retired++;
    expectFound(Panic.Slots);
    slots.retired--;
    expectSound();
  });

  it("slots: copies in the last generation are counted", () => {
    slots.expiring++;
    expectFound(Panic.Slots);
    slots.expiring--;
    const stamp = youngest.stamp;
    youngest.stamp = (7 << 2) | ACTIVE;
    expectFound(Panic.Slots);
    youngest.stamp = stamp;
    expectSound();
  });

  it("slots: the free list holds as many slots as are counted", () => {
    const first = slots.freed;
    slots.freed = first.younger;
    expectFound(Panic.Slots);
    slots.freed = first;
    const second = first.younger;
    first.younger = first;
    expectFound(Panic.Slots);
    first.younger = second;
    expectSound();
  });

  it("slots: the free list holds free slots", () => {
    const second = slots.freed.younger;
    const third = second.younger;
    second.younger = own;
    expectFound(Panic.Slots);
    second.younger = third;
    expectSound();
  });

  it("slots: the free list holds no retired slot", () => {
    const first = slots.freed;
    const second = first.younger;
    const third = second.younger;
    const stamp = first.stamp;
    first.stamp = 8 << 2;
    second.younger = slots.nil();
    slots.recycled--;
    slots.retired++;
    expectFound(Panic.Slots);
    slots.freed = second;
    second.younger = third;
    verify();
    slots.freed = first;
    slots.recycled++;
    slots.retired--;
    first.stamp = stamp;
    expectSound();
  });

  it("counters: live copies are counted", () => {
    slots.recycled++;
    expectFound(Panic.Counters);
    slots.recycled--;
    expectSound();
  });

  it("counters: inactive copies are counted", () => {
    lru.inactive++;
    expectFound(Panic.Counters);
    lru.inactive--;
    expectSound();
  });

  it("counters: references are those of private and of active copies", () => {
    pool.references++;
    expectFound(Panic.Counters);
    pool.references--;
    oldest.refs++;
    expectFound(Panic.Counters);
    oldest.refs--;
    expectSound();
  });

  it("counters: pins are those of active copies", () => {
    pool.pins--;
    expectFound(Panic.Counters);
    pool.pins++;
    single.pins++;
    expectFound(Panic.Counters);
    single.pins--;
    expectSound();
  });

  it("counters: copies and promises fit the capacity", () => {
    pool.open(9);
    expectFound(Panic.Counters);
    pool.open(10);
    verify();
    pool.open(20);
    expectSound();
  });

  it("counters: every promise has a slot", () => {
    const reserved = pool.reserved;
    pool.open(1000);
    pool.reserved = slots.vacant() + 1;
    expectFound(Panic.Counters);
    pool.reserved--;
    verify();
    pool.reserved = reserved;
    pool.open(20);
    expectSound();
  });

  it("inactive list: a link forwards leads back", () => {
    idle.next = idlest;
    expectFound(Panic.InactiveList);
    idle.next = idle;
    expectFound(Panic.InactiveList);
    idle.next = idler;
    expectSound();
  });

  it("inactive list: a link back leads forwards", () => {
    idler.prev = lru.sentinel();
    expectFound(Panic.InactiveList);
    idler.prev = idle;
    expectSound();
  });

  it("inactive list: the last one stands at its end", () => {
    lru.sentinel().prev = idler;
    expectFound(Panic.InactiveList);
    lru.sentinel().prev = idlest;
    expectSound();
  });

  it("inactive list: the last one is followed by none", () => {
    idler.next = lru.sentinel();
    lru.sentinel().prev = idler;
    expectFound(Panic.InactiveList);
    idler.next = idlest;
    lru.sentinel().prev = idlest;
    expectSound();
  });

  it("inactive list: members are inactive", () => {
    const next = idler.next;
    const prev = idler.prev;
    idler.state = PRIVATE; // in exchange for another copy, so that the counts stay right
    own.state = INACTIVE;
    expectFound(Panic.InactiveList);
    own.state = PRIVATE;
    idler.state = INACTIVE;
    expect(idler.next == next && idler.prev == prev).toBe(true);
    expectSound();
  });

  it("hash index: the hash of a copy leads to it", () => {
    single.hash = 5;
    expectFound(Panic.HashIndex);
    single.hash = 4;
    expectSound();
  });

  it("hash index: an entry has its tag", () => {
    const tag = load<u8>(place);
    store<u8>(place, 0);
    expectFound(Panic.HashIndex);
    store<u8>(place, tag + 1);
    expectFound(Panic.HashIndex);
    store<u8>(place, tag);
    expectSound();
  });

  it("hash index: an entry names the oldest copy", () => {
    hashIndex.rename(oldest, middle);
    expectFound(Panic.HashIndex);
    hashIndex.rename(middle, oldest);
    expectSound();
  });

  it("hash index: no bucket counts a pass that nobody made", () => {
    store<u32>(bucket, 1, 12);
    expectFound(Panic.HashIndex);
    store<u32>(bucket, 0, 12);
    expectSound();
  });

  it("hash index: entries are counted, and each has its copy", () => {
    hashIndex.entries++;
    expectFound(Panic.HashIndex);
    hashIndex.entries--;
    expectSound();
  });

  it("copies: a younger copy leads back to its elder", () => {
    middle.elder = youngest;
    expectFound(Panic.Copies);
    middle.elder = oldest;
    expectSound();
  });

  it("copies: the oldest leads to the youngest", () => {
    oldest.elder = single;
    expectFound(Panic.Copies);
    oldest.elder = youngest;
    expectSound();
  });

  it("copies: a chain leaves nobody out", () => {
    oldest.younger = youngest;
    expectFound(Panic.Copies);
    oldest.younger = middle;
    expectSound();
  });

  it("copies: a chain that is a ring has no oldest copy", () => {
    youngest.younger = middle;
    expectFound(Panic.Copies);
    youngest.younger = oldest;
    expectFound(Panic.Copies);
    youngest.younger = slots.nil();
    expectSound();
  });

  it("copies: all of a chain have its hash", () => {
    middle.hash = 4;
    expectFound(Panic.Copies);
    middle.hash = CHAIN;
    expectSound();
  });

  it("copies: all of a chain are cached", () => {
    middle.younger = own; // in place of the youngest, so that the counts stay right
    oldest.elder = own;
    own.elder = middle;
    own.hash = CHAIN;
    expectFound(Panic.Copies);
    middle.younger = youngest;
    oldest.elder = youngest;
    own.elder = slots.nil();
    own.hash = 0;
    expectSound();
  });
});
