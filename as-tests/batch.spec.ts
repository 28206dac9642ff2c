import {
  activate,
  allocateCached,
  allocatePrivate,
  cache,
  cancel,
  detail,
  listInactive,
  makeScratch,
  match,
  numActive,
  numInactive,
  numReferences,
  release,
  reserve,
  reserveResident,
} from "../assembly/core";
import { find } from "../assembly/hash-index";
import { words } from "../assembly/layout";
import { inactive } from "../assembly/lru";
import * as pool from "../assembly/pool";
import * as arena from "../assembly/slots";
import { PRIVATE, idOf, resolve, retired, slots, some } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Status } from "../src/abi";
import {
  drop,
  evictAll,
  fingerprint,
  hashAt,
  idAt,
  live,
  newCached,
  newInactive,
  newPrivate,
  open,
  putHash,
  putHashes,
  putId,
  putIds,
  renew,
  victims,
} from "./support";

const CAPACITY: u32 = 8;
const REFERENCES_MAX = 5000; // of this build

let before: u64 = 0;
let length = 0;

/** The words that a reservation keeps of its prefix, for `putWords`. */
function wordsOf(count: i32): StaticArray<u64> {
  const kept = new StaticArray<u64>(count);
  for (let position = 0; position < count; position++) kept[position] = hashAt(position);
  return kept;
}

/** Expects that the last verb was refused at a position and that nothing has changed since `before`. */
function expectRefused(result: i32, status: i32, position: i32): void {
  expect(result).toBe(-status);
  expect(detail()).toBe(position);
  expect(fingerprint()).toBe(before);
  verify();
}

function note(): void {
  before = fingerprint();
}

function expectEmpty(): void {
  evictAll();
  expect(numActive()).toBe(0);
  expect(numReferences()).toBe(0);
  expect(pool.pins).toBe(0);
  expect(pool.reserved).toBe(0);
  verify();
  renew();
}

/** Makes inactive copies of the hashes from 1 to `count`, in this order of eviction. */
function idle(count: u64): void {
  for (let hash: u64 = 1; hash <= count; hash++) newInactive(hash);
}

describe("batch", () => {
  beforeAll(() => {
    open(CAPACITY);
  });

  it("an empty batch is no error and does nothing", () => {
    note();
    expect(match(0)).toBe(0);
    expect(detail()).toBe(0);
    expect(reserve(0, 0)).toBe(0);
    expect(reserveResident(0, 0)).toBe(0);
    expect(detail()).toBe(0);
    activate(0);
    cancel(0, 0);
    allocatePrivate(0);
    expect(allocateCached(0)).toBe(0);
    expect(cache(0)).toBe(0);
    expect(release(0, 0)).toBe(0);
    expect(release(0, 1)).toBe(0);
    expect(listInactive(0, 0)).toBe(0);
    expect(makeScratch(0)).toBe(0);
    expect(fingerprint()).toBe(before);
  });

  it("a batch is not longer than the scratch page", () => {
    newInactive(1);
    length = <i32>words + 1;
    note();
    expect(() => {
      match(length);
    }).toThrow("match");
    expect(() => {
      reserve(length, 0);
    }).toThrow("reserve");
    expect(() => {
      reserveResident(length, 300);
    }).toThrow("reserveResident");
    expect(() => activate(length)).toThrow("activate");
    expect(() => cancel(length, 0)).toThrow("cancel");
    expect(() => allocatePrivate(length)).toThrow("allocatePrivate");
    expect(() => {
      allocateCached(<i32>words / 2 + 1);
    }).toThrow("allocateCached");
    expect(() => {
      cache(<i32>words / 2 + 1);
    }).toThrow("cache");
    expect(() => {
      release(length, 0);
    }).toThrow("release");
    expect(() => {
      listInactive(0, length);
    }).toThrow("listInactive");
    expect(fingerprint()).toBe(before);
    for (let position = 0; position < <i32>words; position++) putHash(position, 1);
    expect(match(<i32>words)).toBe(256);
    expectEmpty();
  });
});

describe("match", () => {
  it("the leading resident hashes are counted, and among them those that somebody holds", () => {
    const id = newCached(1);
    newInactive(2);
    const other = newCached(3);
    expect(match(putHashes([1, 2, 3]))).toBe(3);
    expect(detail()).toBe(2);
    expect(match(putHashes([2]))).toBe(1);
    expect(detail()).toBe(0);
    expect(match(putHashes([1, 9, 3]))).toBe(1);
    expect(detail()).toBe(1);
    expect(match(putHashes([9, 1, 2]))).toBe(0);
    expect(detail()).toBe(0);
    expect(match(putHashes([3, 3, 2, 3, 9]))).toBe(4);
    expect(detail()).toBe(3);
    drop(id);
    drop(other);
    expectEmpty();
  });

  it("matching changes nothing, neither the pool nor the batch", () => {
    idle(3);
    note();
    match(putHashes([1, 2, 3, 4]));
    for (let position = 0; position < 4; position++) expect(hashAt(position)).toBe(position + 1);
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });
});

describe("reserve", () => {
  it("with enough room nothing is evicted", () => {
    idle(3);
    note();
    expect(reserve(0, CAPACITY - 3)).toBe(0);
    expect(numInactive()).toBe(3);
    expect(numActive()).toBe(CAPACITY - 3);
    verify();
    cancel(0, CAPACITY - 3);
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });

  it("without, those are evicted that were released first, and their hashes are given back in that order", () => {
    idle(5);
    expect(reserve(0, CAPACITY - 5 + 2)).toBe(2);
    expect(hashAt(0)).toBe(1);
    expect(hashAt(1)).toBe(2);
    expect(victims()).toBe("3 4 5");
    verify();
    cancel(0, CAPACITY - 5 + 2);
    expect(victims()).toBe("3 4 5");
    expectEmpty();
  });

  it("all that nobody holds can be evicted at once, and one more block is refused", () => {
    idle(6);
    const id = newCached(7);
    note();
    expectRefused(reserve(0, CAPACITY), Status.NoRoom, 0);
    expect(reserve(0, CAPACITY - 1)).toBe(6);
    for (let position = 0; position < 6; position++) expect(hashAt(position)).toBe(position + 1);
    expect(victims()).toBe("");
    expect(numActive()).toBe(CAPACITY);
    verify();
    note();
    expectRefused(reserve(0, 1), Status.NoRoom, 0);
    expect(reserve(0, 0)).toBe(0);
    cancel(0, CAPACITY - 1);
    drop(id);
    expectEmpty();
  });

  it("evicting one of several copies is silent; only the last one names its hash", () => {
    newInactive(1);
    newInactive(2);
    const id = newCached(1);
    expect(reserve(0, CAPACITY - 3 + 2)).toBe(1);
    expect(hashAt(0)).toBe(2);
    expect(match(putHashes([1]))).toBe(1);
    cancel(0, CAPACITY - 1);
    drop(id);
    expect(reserve(0, CAPACITY)).toBe(1);
    expect(hashAt(0)).toBe(1);
    cancel(0, CAPACITY);
    expectEmpty();
  });

  it("a prefix is pinned: it cannot be evicted and is no reference", () => {
    idle(4);
    expect(reserve(putHashes([1, 2]), CAPACITY - 2)).toBe(2);
    expect(hashAt(2)).toBe(3);
    expect(hashAt(3)).toBe(4);
    expect(numActive()).toBe(CAPACITY);
    expect(numReferences()).toBe(0);
    expect(numInactive()).toBe(0);
    expect(find(1).pins).toBe(1);
    verify();
    cancel(2, CAPACITY - 2);
    expect(victims()).toBe("2 1");
    expectEmpty();
  });

  it("a prefix hides its inactive copies from eviction, each of them once", () => {
    idle(4);
    note();
    expectRefused(reserve(putHashes([2, 2, 2]), CAPACITY), Status.NoRoom, 3);
    expect(reserve(putHashes([2, 2, 2]), CAPACITY - 1)).toBe(3);
    expect(hashAt(3)).toBe(1);
    expect(hashAt(4)).toBe(3);
    expect(hashAt(5)).toBe(4);
    expect(find(2).pins).toBe(3);
    expect(pool.pins).toBe(3);
    verify();
    cancel(3, CAPACITY - 1);
    expect(victims()).toBe("2");
    expectEmpty();
  });

  it("a prefix that somebody holds hides nothing", () => {
    const id = newCached(1);
    newInactive(2);
    expect(reserve(putHashes([1, 1]), CAPACITY - 1)).toBe(1);
    expect(hashAt(2)).toBe(2);
    expect(find(1).pins).toBe(2);
    expect(find(1).refs).toBe(1);
    verify();
    cancel(2, CAPACITY - 1);
    drop(id);
    expectEmpty();
  });

  it("the oldest resident copy is pinned, even if it is inactive and a younger one is not", () => {
    const oldest = newInactive(1);
    const younger = newCached(1);
    reserve(putHashes([1]), 0);
    expect(live(oldest).pins).toBe(1);
    expect(live(younger).pins).toBe(0);
    activate(1);
    expect(idAt(0)).toBe(oldest);
    verify();
    drop(oldest);
    drop(younger);
    expectEmpty();
  });

  it("a missing hash is refused before room is asked for, and nothing changes", () => {
    idle(3);
    note();
    expectRefused(reserve(putHashes([9]), 0), Status.MissingPrefix, 0);
    expectRefused(reserve(putHashes([1, 2, 9, 3]), 0), Status.MissingPrefix, 2);
    expectRefused(reserve(putHashes([1, 1, 9]), 1000), Status.MissingPrefix, 2);
    expectEmpty();
  });

  it("absurdly many blocks are refused without overflow", () => {
    idle(3);
    note();
    expectRefused(reserve(0, u32.MAX_VALUE), Status.NoRoom, 0);
    expectRefused(reserve(putHashes([1]), u32.MAX_VALUE), Status.NoRoom, 1);
    expectRefused(reserve(0, 1 << 31), Status.NoRoom, 0);
    expectRefused(reserveResident(putHashes([1, 2]), u32.MAX_VALUE), Status.NoRoom, 2);
    expectEmpty();
  });

  it("room that another reservation holds is neither given nor evicted for", () => {
    idle(2);
    expect(reserve(putHashes([1]), 3)).toBe(0);
    const kept = wordsOf(1);
    expect(reserve(0, 3)).toBe(0);
    note();
    expectRefused(reserve(0, 2), Status.NoRoom, 0);
    expect(reserve(0, 1)).toBe(1);
    expect(hashAt(0)).toBe(2);
    verify();
    cancel(0, 1);
    cancel(0, 3);
    putHashes(kept);
    cancel(1, 3);
    expectEmpty();
  });
});

describe("reserveResident", () => {
  it("the leading resident hashes are pinned and the others get room", () => {
    idle(3);
    expect(reserveResident(putHashes([1, 2, 9, 3]), 4)).toBe(0);
    expect(detail()).toBe(2);
    expect(pool.pins).toBe(2);
    expect(pool.reserved).toBe(2);
    expect(find(3).state).toBe(arena.INACTIVE);
    verify();
    cancel(2, 2);
    expect(victims()).toBe("3 2 1");
    expectEmpty();
  });

  it("a prefix that is nowhere pins nothing, and one that is resident as a whole asks for no room", () => {
    idle(2);
    expect(reserveResident(putHashes([8, 1, 2]), 3)).toBe(0);
    expect(detail()).toBe(0);
    expect(pool.reserved).toBe(3);
    expect(pool.pins).toBe(0);
    cancel(0, 3);
    expect(reserveResident(putHashes([1, 2]), 2)).toBe(0);
    expect(detail()).toBe(2);
    expect(pool.reserved).toBe(0);
    expect(pool.pins).toBe(2);
    verify();
    cancel(2, 0);
    expectEmpty();
  });

  it("evicted hashes stand behind the pinned ones, and both are counted", () => {
    idle(4);
    expect(reserveResident(putHashes([2, 3, 9]), CAPACITY)).toBe(2);
    expect(detail()).toBe(2);
    expect(hashAt(2)).toBe(1);
    expect(hashAt(3)).toBe(4);
    verify();
    cancel(2, CAPACITY - 2);
    expect(victims()).toBe("3 2");
    expectEmpty();
  });

  it("a refusal changes nothing", () => {
    idle(2);
    const id = newPrivate();
    note();
    expectRefused(reserveResident(putHashes([1, 2, 9]), CAPACITY), Status.NoRoom, 2);
    expect(reserveResident(putHashes([1, 2, 9]), CAPACITY - 1)).toBe(0);
    expect(detail()).toBe(2);
    cancel(2, CAPACITY - 3);
    drop(id);
    expectEmpty();
  });

  it("no more hashes are pinned than blocks were asked for", () => {
    idle(3);
    note();
    putHashes([1, 2, 3]);
    expect(() => {
      reserveResident(3, 2);
    }).toThrow();
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });
});

describe("cancel", () => {
  it("a cancelled prefix is evicted leaf before root", () => {
    idle(4);
    reserve(putHashes([1, 2, 3]), 0);
    expect(victims()).toBe("4");
    cancel(3, 0);
    expect(victims()).toBe("4 3 2 1");
    verify();
    expectEmpty();
  });

  it("a reservation that is half used gives back the other half", () => {
    idle(2);
    reserve(putHashes([1, 2]), 4);
    const kept = wordsOf(2);
    allocatePrivate(2);
    const ids: StaticArray<f64> = [idAt(0), idAt(1)];
    putHashes(kept);
    cancel(2, 2);
    expect(numActive()).toBe(2);
    expect(victims()).toBe("2 1");
    verify();
    release(putIds(ids), 0);
    expectEmpty();
  });

  it("a copy stays active while another reservation has pinned it", () => {
    idle(2);
    reserve(putHashes([1, 2]), 0);
    const first = wordsOf(2);
    reserve(putHashes([1]), 0);
    const second = wordsOf(1);
    putHashes(first);
    cancel(2, 0);
    expect(victims()).toBe("2");
    expect(numActive()).toBe(1);
    verify();
    putHashes(second);
    cancel(1, 0);
    expect(victims()).toBe("2 1");
    expectEmpty();
  });

  it("what is not pinned is not unpinned, and room that is not held is not given back", () => {
    newInactive(1);
    note();
    expect(() => cancel(0, 1)).toThrow();
    expect(fingerprint()).toBe(before);
    reserve(putHashes([1]), 0);
    const kept = wordsOf(1);
    cancel(1, 0);
    putHashes(kept);
    note();
    expect(() => cancel(1, 0)).toThrow();
    expect(() => activate(1)).toThrow();
    expect(fingerprint()).toBe(before);
    expectEmpty();
  });
});

describe("activate", () => {
  it("every entry of a prefix becomes a reference, and its id is given", () => {
    idle(2);
    reserve(putHashes([1, 2, 1]), 1);
    activate(3);
    expect(resolve(idAt(0)) == find(1)).toBe(true);
    expect(resolve(idAt(1)) == find(2)).toBe(true);
    expect(idAt(2)).toBe(idAt(0));
    expect(find(1).refs).toBe(2);
    expect(find(1).pins).toBe(0);
    expect(numReferences()).toBe(3);
    expect(numActive()).toBe(3);
    expect(pool.pins).toBe(0);
    verify();
    cancel(0, 1);
    expect(release(3, 0)).toBe(0);
    expect(victims()).toBe("2 1");
    expectEmpty();
  });

  it("other reservations keep their pins", () => {
    newInactive(1);
    reserve(putHashes([1]), 0);
    const kept = wordsOf(1);
    reserve(putHashes([1]), 0);
    activate(1);
    const id = idAt(0);
    expect(live(id).refs).toBe(1);
    expect(live(id).pins).toBe(1);
    verify();
    drop(id);
    expect(victims()).toBe("");
    putHashes(kept);
    cancel(1, 0);
    expect(victims()).toBe("1");
    expectEmpty();
  });
});

describe("allocate", () => {
  it("private copies get ids of their own", () => {
    reserve(0, 3);
    allocatePrivate(3);
    const ids: StaticArray<f64> = [idAt(0), idAt(1), idAt(2)];
    expect(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]).toBe(true);
    for (let position = 0; position < 3; position++) expect(live(ids[position]).state).toBe(PRIVATE);
    expect(numReferences()).toBe(3);
    verify();
    release(putIds(ids), 0);
    expectEmpty();
  });

  it("no more is allocated than was reserved", () => {
    reserve(0, 1);
    allocatePrivate(1);
    const id = idAt(0);
    note();
    expect(() => allocatePrivate(1)).toThrow();
    expect(() => {
      allocateCached(1);
    }).toThrow();
    expect(fingerprint()).toBe(before);
    drop(id);
    expectEmpty();
  });

  it("cached copies answer to the hashes behind their places, and those that became visible are counted", () => {
    const id = newCached(5);
    reserve(0, 4);
    putHashes([0, 0, 0, 0, 5, 6, 7, 6]);
    expect(allocateCached(4)).toBe(2);
    expect(find(5) == live(id)).toBe(true);
    expect(find(5).younger == live(idAt(0))).toBe(true);
    expect(find(6) == live(idAt(1))).toBe(true);
    expect(find(7) == live(idAt(2))).toBe(true);
    expect(find(6).younger == live(idAt(3))).toBe(true);
    expect(numReferences()).toBe(5);
    verify();
    expect(release(4, 0)).toBe(0);
    drop(id);
    expect(victims()).toBe("5 6 7 6 5");
    expectEmpty();
  });
});

describe("cache", () => {
  it("private copies answer to their hashes and keep their ids; those that became visible are counted", () => {
    const a = newPrivate();
    const b = newPrivate();
    const c = newPrivate();
    putIds([a, b, c]);
    putHash(3, 7);
    putHash(4, 8);
    putHash(5, 7);
    expect(cache(3)).toBe(2);
    expect(idAt(0)).toBe(a);
    expect(idAt(1)).toBe(b);
    expect(idAt(2)).toBe(c);
    expect(find(7) == live(a)).toBe(true);
    expect(find(8) == live(b)).toBe(true);
    expect(find(7).younger == live(c)).toBe(true);
    verify();
    release(putIds([a, b, c]), 0);
    expectEmpty();
  });

  it("a batch with an id that cannot be cached is refused at its place, and nothing changes", () => {
    const a = newPrivate();
    const b = newPrivate();
    const stale = newPrivate();
    drop(stale);
    const cached = newCached(1);
    const idle = newInactive(2);
    for (let position = 0; position < 9; position++) putHash(position, 100);
    note();
    putIds([a, b, stale]);
    expectRefused(cache(3), Status.UnknownCopy, 2);
    putIds([cached, a, b]);
    expectRefused(cache(3), Status.AlreadyCached, 0);
    putIds([a, idle, b]);
    expectRefused(cache(3), Status.AlreadyCached, 1);
    putIds([a, b, a]);
    expectRefused(cache(3), Status.DuplicateCopy, 2);
    putIds([NaN, a, b]);
    expectRefused(cache(3), Status.UnknownCopy, 0);
    putIds([a, 0, b]);
    expectRefused(cache(3), Status.UnknownCopy, 1);
    expect(some(find(100))).toBe(false);
    putIds([a, b]);
    putHash(2, 3);
    putHash(3, 4);
    expect(cache(2)).toBe(2);
    verify();
    release(putIds([a, b, cached]), 0);
    expectEmpty();
  });
});

describe("release", () => {
  it("forwards, the first of a batch is evicted first", () => {
    const ids: StaticArray<f64> = [newCached(1), newCached(2), newCached(3)];
    expect(release(putIds(ids), 0)).toBe(0);
    expect(victims()).toBe("1 2 3");
    verify();
    expectEmpty();
  });

  it("backwards, the last of a batch is evicted first: leaf before root", () => {
    const ids: StaticArray<f64> = [newCached(1), newCached(2), newCached(3)];
    expect(release(putIds(ids), 1)).toBe(0);
    expect(victims()).toBe("3 2 1");
    verify();
    expectEmpty();
  });

  it("private copies go at once, cached ones when nobody holds them", () => {
    const own = newPrivate();
    const shared = newCached(1);
    reserve(putHashes([1]), 0);
    activate(1);
    const last = newCached(2);
    expect(release(putIds([own, shared, last]), 0)).toBe(0);
    expect(some(resolve(own))).toBe(false);
    expect(numReferences()).toBe(1);
    expect(victims()).toBe("2");
    verify();
    drop(shared);
    expect(victims()).toBe("2 1");
    expectEmpty();
  });

  it("a batch may name a cached copy as often as it has references, and not more", () => {
    const id = newCached(1);
    const other = newCached(2);
    reserve(putHashes([1, 1]), 0);
    activate(2);
    expect(live(id).refs).toBe(3);
    for (let backwards = 0; backwards <= 1; backwards++) {
      note();
      putIds([id, id, other, id, id]);
      expectRefused(release(5, backwards), Status.NotReferenced, backwards ? 0 : 4);
    }
    expect(release(putIds([id, other, id, id]), 0)).toBe(0);
    expect(victims()).toBe("2 1");
    verify();
    expectEmpty();
  });

  it("a batch names a private copy once: the second time it is gone", () => {
    const a = newPrivate();
    const b = newPrivate();
    note();
    putIds([a, b, a]);
    expectRefused(release(3, 0), Status.UnknownCopy, 2);
    putIds([a, b, a]);
    expectRefused(release(3, 1), Status.UnknownCopy, 0);
    expect(release(putIds([a, b]), 0)).toBe(0);
    expectEmpty();
  });

  it("a batch with an id that cannot be released is refused at its place, and nothing changes", () => {
    const own = newPrivate();
    const cached = newCached(1);
    const shared = newCached(3);
    reserve(putHashes([3]), 0);
    activate(1);
    const idle = newInactive(2);
    const stale = newPrivate();
    drop(stale);
    for (let backwards = 0; backwards <= 1; backwards++) {
      note();
      putIds([own, cached, shared, stale]);
      expectRefused(release(4, backwards), Status.UnknownCopy, 3);
      putIds([stale, cached, shared, own]);
      expectRefused(release(4, backwards), Status.UnknownCopy, 0);
      putIds([cached, own, idle, shared, own]);
      expectRefused(release(4, backwards), Status.NotReferenced, 2);
      putIds([shared, cached, -1, shared]);
      expectRefused(release(4, backwards), Status.UnknownCopy, 2);
      putIds([shared, cached, own + 0.5, shared]);
      expectRefused(release(4, backwards), Status.UnknownCopy, 2);
    }
    expect(release(putIds([own, cached, shared, shared]), 0)).toBe(0);
    expect(victims()).toBe("2 1 3");
    expectEmpty();
  });

  it("a pin is no reference to release", () => {
    const id = newInactive(1);
    reserve(putHashes([1]), 0);
    const kept = wordsOf(1);
    note();
    putId(0, id);
    expectRefused(release(1, 0), Status.NotReferenced, 0);
    putHashes(kept);
    cancel(1, 0);
    expectEmpty();
  });

  it("a refused batch that would have retired slots retires none", () => {
    const a = newPrivate();
    const b = newPrivate();
    const stamp = live(a).stamp;
    live(a).stamp = (7 << 2) | PRIVATE;
    arena.expiring++;
    const last = idOf(arena.slotOf(a));
    note();
    putIds([b, last, b]);
    expectRefused(release(3, 0), Status.UnknownCopy, 2);
    expect(retired).toBe(0);
    live(last).stamp = stamp;
    arena.expiring--;
    release(putIds([a, b]), 0);
    expectEmpty();
  });
});

describe("listInactive", () => {
  it("the inactive copies are listed from the first victim on, page by page", () => {
    const ids: StaticArray<f64> = [newInactive(1), newInactive(2), newInactive(3), newInactive(4), newInactive(5)];
    expect(listInactive(0, 2)).toBe(2);
    expect(idAt(0)).toBe(ids[0]);
    expect(idAt(1)).toBe(ids[1]);
    expect(listInactive(ids[1], 2)).toBe(2);
    expect(idAt(0)).toBe(ids[2]);
    expect(idAt(1)).toBe(ids[3]);
    expect(listInactive(ids[3], 2)).toBe(1);
    expect(idAt(0)).toBe(ids[4]);
    expect(listInactive(ids[4], 2)).toBe(0);
    expect(listInactive(0, 256)).toBe(5);
    for (let position = 0; position < 5; position++) expect(idAt(position)).toBe(ids[position]);
    expectEmpty();
    expect(listInactive(0, 256)).toBe(0);
  });
});

describe("limits", () => {
  it("references, pins and promises together stay within their limit", () => {
    newInactive(1);
    expect(makeScratch(REFERENCES_MAX + 1)).toBe(0);
    for (let position = 0; position <= REFERENCES_MAX; position++) putHash(position, 1);
    note();
    expectRefused(reserve(REFERENCES_MAX + 1, 0), Status.ReferencesExhausted, REFERENCES_MAX + 1);
    for (let position = 0; position <= REFERENCES_MAX; position++) putHash(position, 1);
    expectRefused(reserve(REFERENCES_MAX, 1), Status.ReferencesExhausted, REFERENCES_MAX);
    for (let position = 0; position <= REFERENCES_MAX; position++) putHash(position, 1);
    expectRefused(reserveResident(REFERENCES_MAX, REFERENCES_MAX + 1), Status.ReferencesExhausted, REFERENCES_MAX);
    for (let position = 0; position <= REFERENCES_MAX; position++) putHash(position, 1);
    expect(reserve(REFERENCES_MAX - 4, 1)).toBe(0);
    activate(REFERENCES_MAX - 5);
    expect(numReferences()).toBe(REFERENCES_MAX - 5);
    expect(pool.pins).toBe(1);
    verify();
  });

  it("each of references, pins and promises counts", () => {
    expect(pool.references + pool.pins + pool.reserved).toBe(REFERENCES_MAX - 3);
    note();
    expectRefused(reserve(putHashes([1, 1, 1, 1]), 0), Status.ReferencesExhausted, 4);
    expectRefused(reserve(putHashes([1, 1, 1]), 1), Status.ReferencesExhausted, 3);
    expectRefused(reserve(0, 4), Status.ReferencesExhausted, 0);
    expect(reserve(0, 3)).toBe(0);
    cancel(0, 3);
    expect(reserve(putHashes([1, 1]), 1)).toBe(0);
    cancel(2, 1);
    expect(fingerprint()).toBe(before);
  });

  it("room is asked for before references are", () => {
    note();
    expectRefused(reserve(0, CAPACITY), Status.NoRoom, 0);
  });

  it("a copy with thousands of references goes when the last one does", () => {
    const id = idOf(find(1));
    find(1).pins--; // the reservation's own words have been overwritten
    pool.pins--;
    pool.takeBack(1);
    for (let position = 0; position < REFERENCES_MAX - 5; position++) putId(position, id);
    putId(REFERENCES_MAX - 5, id);
    note();
    expectRefused(release(REFERENCES_MAX - 4, 0), Status.NotReferenced, REFERENCES_MAX - 5);
    for (let position = 0; position < REFERENCES_MAX - 5; position++) putId(position, id);
    expect(release(REFERENCES_MAX - 5, 0)).toBe(0);
    expect(victims()).toBe("1");
    verify();
    expectEmpty();
  });

  it("a victim whose slot retires is replaced by a new slot", () => {
    idle(CAPACITY);
    const head = live(idOf(find(1)));
    const second = find(2);
    head.stamp = (7 << 2) | head.state;
    second.stamp = (7 << 2) | second.state;
    arena.expiring += 2;
    const length = slots;
    const left = arena.vacant();
    verify();
    expect(reserve(0, left + 2)).toBe(left + 2);
    expect(retired).toBe(2);
    expect(slots).toBe(length + 2);
    expect(inactive).toBe(CAPACITY - left - 2);
    verify();
    cancel(0, left + 2);
    expectEmpty();
  });

  it("a victim in its last generation that the prefix hides is not counted as lost", () => {
    idle(CAPACITY);
    const head = find(1);
    head.stamp = (7 << 2) | head.state;
    arena.expiring++;
    const length = slots;
    verify();
    expect(reserve(putHashes([1]), CAPACITY - 1)).toBe(CAPACITY - 1);
    expect(slots).toBe(length);
    expect(retired).toBe(2);
    verify();
    cancel(1, CAPACITY - 1);
    expect(victims()).toBe("1");
    expectEmpty();
    expect(retired).toBe(3);
  });
});
