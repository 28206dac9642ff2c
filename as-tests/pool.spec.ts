import { find } from "../assembly/hash-index";
import { inactive, shift } from "../assembly/lru";
import * as pool from "../assembly/pool";
import {
  activate,
  allocate,
  cache,
  capacity,
  copies,
  evict,
  evictable,
  isActive,
  pin,
  pins,
  references,
  release,
  reserved,
  reusable,
  room,
  setAside,
  slotsEnough,
  takeBack,
  unpin,
  unrelease,
} from "../assembly/pool";
import * as arena from "../assembly/slots";
import {
  ACTIVE,
  FREE,
  INACTIVE,
  PRIVATE,
  Slot,
  idOf,
  nil,
  resolve,
  retired,
  slots,
  some,
  vacant,
} from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Status } from "../src/abi";
import { fingerprint, open, renew, victims } from "./support";

const CAPACITY: u32 = 6;

let before: u64 = 0;
let subject: Slot = nil();

/** Makes a private copy. */
function own(): Slot {
  setAside(1);
  return allocate();
}

/** Makes a cached copy with one reference. */
function cached(hash: u64): Slot {
  const slot = own();
  cache(slot, hash);
  return slot;
}

/** Makes a cached copy that nobody holds. */
function idle(hash: u64): Slot {
  const slot = cached(hash);
  release(slot);
  return slot;
}

/** Brings a copy into the last generation of its slot. */
function age(slot: Slot): void {
  slot.stamp = (7 << 2) | slot.state;
  arena.expiring++;
}

function rejuvenate(slot: Slot, stamp: u32): void {
  slot.stamp = stamp;
  arena.expiring--;
}

function expectEmpty(): void {
  while (inactive > 0) evict(shift());
  expect(copies()).toBe(0);
  expect(reserved).toBe(0);
  expect(references).toBe(0);
  expect(pins).toBe(0);
  expect(room()).toBe(CAPACITY);
  verify();
  renew();
}

// Expects a trap. What was counted before it is taken back: a core that has stopped owes no order to anybody.
function expectStop(law: () => void, message: string = ""): void {
  const held = reserved;
  const referenced = references;
  const pinned = pins;
  expect(law).toThrow(message);
  pool.reserved = held;
  pool.references = referenced;
  pool.pins = pinned;
}

describe("pool", () => {
  beforeAll(() => {
    open(CAPACITY);
  });

  it("a new pool is all room", () => {
    expect(capacity).toBe(CAPACITY);
    expect(slots).toBe(8); // seven, in pairs
    expectEmpty();
  });

  it("room that is set aside is not given twice and comes back when it is not used", () => {
    setAside(4);
    expect(room()).toBe(2);
    expect(reserved).toBe(4);
    takeBack(1);
    expect(room()).toBe(3);
    takeBack(3);
    expectEmpty();
  });

  it("a block of reserved room becomes a private copy with one reference", () => {
    setAside(1);
    const slot = allocate();
    expect(slot.state).toBe(PRIVATE);
    expect(reserved).toBe(0);
    expect(references).toBe(1);
    expect(copies()).toBe(1);
    expect(room()).toBe(CAPACITY - 1);
    verify();
    release(slot);
    expectEmpty();
  });

  it("a private copy that is released frees its block at once, and its id", () => {
    const slot = own();
    const id = idOf(slot);
    release(slot);
    expect(slot.state).toBe(FREE);
    expect(some(resolve(id))).toBe(false);
    expect(evictable()).toBe(0);
    expectEmpty();
  });

  it("a private copy that is cached keeps its reference and its id, and its hash leads to it", () => {
    const slot = own();
    const id = idOf(slot);
    expect(cache(slot, 7)).toBe(true);
    expect(slot.state).toBe(ACTIVE);
    expect(isActive(slot)).toBe(true);
    expect(slot.refs).toBe(1);
    expect(slot.pins).toBe(0);
    expect(references).toBe(1);
    expect(idOf(slot)).toBe(id);
    expect(find(7) == slot).toBe(true);
    verify();
    release(slot);
    expectEmpty();
  });

  it("a second copy of a hash does not make it visible, and lookups go to the first", () => {
    const first = cached(7);
    const second = own();
    expect(cache(second, 7)).toBe(false);
    expect(find(7) == first).toBe(true);
    release(first);
    expect(find(7) == first).toBe(true);
    verify();
    release(second);
    expectEmpty();
  });

  it("a cached copy that loses its last reference may be evicted, and stays until it is", () => {
    const slot = cached(7);
    release(slot);
    expect(slot.state).toBe(INACTIVE);
    expect(isActive(slot)).toBe(false);
    expect(evictable()).toBe(1);
    expect(references).toBe(0);
    expect(room()).toBe(CAPACITY - 1);
    expect(find(7) == slot).toBe(true);
    verify();
    expectEmpty();
  });

  it("a pin takes an inactive copy out of the list, and gives it back at the end", () => {
    const first = idle(1);
    idle(2);
    expect(victims()).toBe("1 2");
    pin(first);
    expect(first.state).toBe(ACTIVE);
    expect(first.refs).toBe(0);
    expect(first.pins).toBe(1);
    expect(pins).toBe(1);
    expect(references).toBe(0);
    expect(victims()).toBe("2");
    verify();
    unpin(first);
    expect(pins).toBe(0);
    expect(victims()).toBe("2 1");
    verify();
    expectEmpty();
  });

  it("a copy that is pinned twice waits for both", () => {
    const slot = idle(1);
    pin(slot);
    pin(slot);
    expect(slot.pins).toBe(2);
    unpin(slot);
    expect(isActive(slot)).toBe(true);
    verify();
    unpin(slot);
    expect(isActive(slot)).toBe(false);
    expectEmpty();
  });

  it("a pin becomes a reference", () => {
    const slot = idle(1);
    pin(slot);
    activate(slot);
    expect(slot.pins).toBe(0);
    expect(slot.refs).toBe(1);
    expect(pins).toBe(0);
    expect(references).toBe(1);
    verify();
    release(slot);
    expect(victims()).toBe("1");
    expectEmpty();
  });

  it("a pin keeps a copy whose references have gone, a reference one whose pins have", () => {
    const slot = cached(1);
    pin(slot);
    release(slot);
    expect(isActive(slot)).toBe(true);
    expect(victims()).toBe("");
    verify();
    pin(slot);
    activate(slot);
    unpin(slot);
    expect(isActive(slot)).toBe(true);
    expect(victims()).toBe("");
    verify();
    release(slot);
    expect(victims()).toBe("1");
    expectEmpty();
  });

  it("eviction names a hash only when its last copy goes", () => {
    const first = idle(1);
    const second = idle(1);
    expect(evict(shift())).toBe(false);
    expect(first.state).toBe(FREE);
    expect(find(1) == second).toBe(true);
    expect(copies()).toBe(1);
    verify();
    expect(evict(shift())).toBe(true);
    expect(some(find(1))).toBe(false);
    expect(second.state).toBe(FREE);
    expectEmpty();
  });

  it("a copy that is evicted answers to its id no more", () => {
    const slot = idle(1);
    const id = idOf(slot);
    evict(shift());
    expect(some(resolve(id))).toBe(false);
    expectEmpty();
  });

  it("a full pool has no room, and no slot but those that eviction frees", () => {
    for (let hash: u64 = 0; hash < <u64>CAPACITY; hash++) idle(hash);
    expect(room()).toBe(0);
    expect(evictable()).toBe(CAPACITY);
    expect(vacant()).toBe(slots - 1 - CAPACITY - retired);
    verify();
    expectEmpty();
  });

  it("every victim frees its slot as long as no copy is in the last generation of one", () => {
    idle(1);
    idle(2);
    expect(reusable(0)).toBe(0);
    expect(reusable(2)).toBe(2);
    expectEmpty();
  });

  it("a victim in the last generation of its slot frees none", () => {
    const first = idle(1);
    idle(2);
    const third = idle(3);
    const stamp = first.stamp;
    age(first);
    verify();
    expect(reusable(1)).toBe(0);
    expect(reusable(2)).toBe(1);
    expect(reusable(3)).toBe(2);
    age(third);
    expect(reusable(3)).toBe(1);
    rejuvenate(third, stamp);
    rejuvenate(first, stamp);
    expectEmpty();
  });

  it("a copy that the batch has claimed is no victim", () => {
    const first = idle(1);
    const second = idle(2);
    idle(3);
    const stamp = second.stamp;
    age(second);
    first.claims = 1;
    expect(reusable(1)).toBe(0);
    expect(reusable(2)).toBe(1);
    first.claims = 0;
    second.claims = 2;
    expect(reusable(2)).toBe(2);
    second.claims = 0;
    rejuvenate(second, stamp);
    expectEmpty();
  });

  it("nobody counts on more victims than there are", () => {
    subject = idle(1);
    const stamp = subject.stamp;
    age(subject);
    expectStop(() => {
      reusable(2);
    });
    rejuvenate(subject, stamp);
    expectEmpty();
  });

  it("no more is promised than the capacity holds", () => {
    setAside(5);
    expectStop(() => setAside(2));
    before = fingerprint();
    pool.open(4);
    expectStop(() => {
      room();
    });
    pool.open(CAPACITY);
    expect(fingerprint()).toBe(before);
    takeBack(5);
    expectEmpty();
  });

  it("no more is promised than there are slots", () => {
    pool.open(100);
    setAside(vacant());
    expectStop(() => setAside(1));
    takeBack(reserved);
    pool.open(CAPACITY);
    expectEmpty();
  });

  it("no more is given back than is held", () => {
    setAside(1);
    expectStop(() => takeBack(2));
    expect(reserved).toBe(1);
    takeBack(1);
    expectEmpty();
  });

  it("nothing is allocated that was not reserved", () => {
    before = fingerprint();
    expectStop(() => {
      allocate();
    });
    expect(fingerprint()).toBe(before);
  });

  it("only a private copy is cached", () => {
    subject = cached(1);
    before = fingerprint();
    expectStop(() => {
      cache(subject, 2);
    }, "an active copy");
    expect(fingerprint()).toBe(before);
    release(subject);
    before = fingerprint();
    expectStop(() => {
      cache(subject, 2);
    }, "an inactive copy");
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });

  it("only a cached copy is pinned", () => {
    subject = own();
    before = fingerprint();
    expectStop(() => pin(subject));
    expect(fingerprint()).toBe(before);
    release(subject);
    expectEmpty();
  });

  it("what nobody has pinned is neither unpinned nor activated", () => {
    subject = cached(1);
    before = fingerprint();
    expectStop(() => unpin(subject), "a copy with a reference alone");
    expectStop(() => activate(subject), "a copy with a reference alone");
    expect(fingerprint()).toBe(before);
    release(subject);
    before = fingerprint();
    expectStop(() => unpin(subject), "an inactive copy");
    expectStop(() => activate(subject), "an inactive copy");
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });

  it("a reference that is not there is not released", () => {
    subject = idle(1);
    before = fingerprint();
    expect(release(subject)).toBe(Status.NotReferenced);
    expect(fingerprint()).toBe(before);
    pin(subject);
    before = fingerprint();
    expect(release(subject)).toBe(Status.NotReferenced);
    expect(fingerprint()).toBe(before);
    activate(subject);
    expect(release(subject)).toBe(Status.Ok);
    expect(release(own())).toBe(Status.Ok);
    expectEmpty();
  });

  it("a release that is taken back leaves what was there before", () => {
    subject = cached(1);
    idle(2);
    before = fingerprint();
    release(subject);
    expect(victims()).toBe("2 1");
    unrelease(subject);
    expect(fingerprint()).toBe(before);
    pin(subject);
    activate(subject);
    before = fingerprint();
    release(subject);
    release(subject);
    unrelease(subject);
    unrelease(subject);
    expect(fingerprint()).toBe(before);
    release(subject);
    release(subject);
    expectEmpty();
  });

  it("private copies whose release is taken back, the last one first, have their ids again", () => {
    const first = own();
    const second = own();
    const id = idOf(second);
    before = fingerprint();
    release(first);
    release(second);
    expect(some(resolve(id))).toBe(false);
    unrelease(second);
    unrelease(first);
    expect(resolve(id) == second).toBe(true);
    expect(fingerprint()).toBe(before);
    age(second);
    before = fingerprint();
    release(first);
    release(second);
    expect(retired).toBe(1);
    unrelease(second);
    unrelease(first);
    expect(fingerprint()).toBe(before);
    rejuvenate(second, <u32>(<u64>id >> 24 << 2) | PRIVATE);
    release(first);
    release(second);
    expectEmpty();
  });

  it("a copy in the last generation of its slot leaves the pool one slot short", () => {
    expect(slotsEnough()).toBe(CAPACITY + 1);
    const slot = own();
    age(slot);
    const left = vacant();
    release(slot);
    expect(retired).toBe(1);
    expect(vacant()).toBe(left);
    expect(slotsEnough()).toBe(CAPACITY + 2);
    expectEmpty();
    const victim = idle(1);
    age(victim);
    expect(evict(shift())).toBe(true);
    expect(retired).toBe(2);
    expect(slotsEnough()).toBe(CAPACITY + 3);
    expectEmpty();
  });
});
