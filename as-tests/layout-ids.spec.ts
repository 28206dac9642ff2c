import {
  allocatePrivate,
  cancel,
  match,
  numActive,
  numInactive,
  numReferences,
  release,
  reserve,
} from "../assembly/core";
import { makeRoom } from "../assembly/layout";
import { SLOT_NUMBERS, expiring, retired, slots, vacant } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { SLOT_BITS, Status } from "../src/abi";
import { fingerprint, idAt, newInactive, open, putHash, putId } from "./support";

// A pool of one block spends every id of this build: 4,095 slot numbers with 8 generations each.
const IDS = (4096 - 1) * 8;
const HASH: u64 = 42;

const seen = new StaticArray<bool>(4096 * 8);
let before: u64 = 0;

/** Allocates and releases a private copy, and tells whether its id was new. */
function spend(): bool {
  assert(reserve(0, 1) == 0);
  allocatePrivate(1);
  const id = <u64>idAt(0);
  const key = <i32>((id & ((1 << SLOT_BITS) - 1)) | ((id >> SLOT_BITS) << 12));
  const isNew = !seen[key];
  seen[key] = true;
  assert(release(1, 0) == 0);
  return isNew;
}

describe("layout when ids run out", () => {
  beforeAll(() => {
    open(1);
  });

  it("a pool of one block starts with one slot and the sentinel", () => {
    expect(slots).toBe(2);
    expect(SLOT_NUMBERS).toBe(4096);
    verify();
  });

  it("a slot that retires is replaced by another one", () => {
    for (let spent = 0; spent < 8; spent++) expect(spend()).toBe(true);
    expect(retired).toBe(1);
    expect(vacant()).toBe(0);
    expect(spend()).toBe(true);
    expect(slots).toBe(4);
    verify();
  });

  it("no id is given twice", () => {
    let news = 9;
    while (news < IDS - 1 && spend()) news++;
    expect(news).toBe(IDS - 1);
    expect(slots).toBe(SLOT_NUMBERS);
    expect(retired).toBe(SLOT_NUMBERS - 2);
    verify();
  });

  it("the last id of all can be cached, and evicting it would leave no slot", () => {
    const last = newInactive(HASH);
    expect(last).toBe(<f64>((<u64>7 << SLOT_BITS) | 4095));
    expect(expiring).toBe(1);
    verify();
  });

  it("when all ids are spent a reservation is refused and changes nothing", () => {
    before = fingerprint();
    expect(reserve(0, 1)).toBe(-Status.IdsExhausted);
    expect(fingerprint()).toBe(before);
    expect(numActive()).toBe(0);
    expect(numInactive()).toBe(1);
    verify();
  });

  it("a pool without ids still answers and still pins what it has", () => {
    putHash(0, HASH);
    expect(match(1)).toBe(1);
    expect(reserve(1, 0)).toBe(0);
    expect(numActive()).toBe(1);
    expect(numReferences()).toBe(0);
    cancel(1, 0);
    putId(0, <f64>((<u64>7 << SLOT_BITS) | 4095));
    expect(release(1, 0)).toBe(-Status.NotReferenced);
    expect(reserve(0, 0)).toBe(0);
    expect(numInactive()).toBe(1);
    verify();
  });

  it("no room is left for even one slot", () => {
    expect(makeRoom(0, 0, 2)).toBe(Status.Ok);
    expect(makeRoom(0, 1, 2)).toBe(Status.IdsExhausted);
  });
});
