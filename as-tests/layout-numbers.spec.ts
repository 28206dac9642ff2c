import { allocatePrivate, makeScratch, release, reserve } from "../assembly/core";
import { SLOT_NUMBERS, retired, slots, vacant } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { Status } from "../src/abi";
import { fingerprint, open } from "./support";

// A pool of nearly as many blocks as there are slot numbers: doubling its slots would pass the last number.
const BLOCKS = 4000;

let before: u64 = 0;

describe("layout near the last slot number", () => {
  beforeAll(() => {
    open(BLOCKS);
    makeScratch(BLOCKS);
  });

  it("a pool uses up its slots", () => {
    for (let generation = 0; generation < 8; generation++) {
      expect(reserve(0, BLOCKS)).toBe(0);
      allocatePrivate(BLOCKS);
      expect(release(BLOCKS, 0)).toBe(0);
    }
    expect(slots).toBe(BLOCKS + 2);
    expect(retired).toBe(BLOCKS);
    expect(vacant()).toBe(1);
    verify();
  });

  it("a batch that the last numbers cannot serve is refused and changes nothing", () => {
    before = fingerprint();
    expect(reserve(0, 96)).toBe(-Status.IdsExhausted);
    expect(fingerprint()).toBe(before);
    verify();
  });

  it("slots grow up to the last number before ids are exhausted", () => {
    expect(reserve(0, 2)).toBe(0);
    expect(slots).toBe(SLOT_NUMBERS);
    verify();
    expect(reserve(0, 93)).toBe(0);
    expect(vacant()).toBe(95);
    expect(reserve(0, 1)).toBe(-Status.IdsExhausted);
    allocatePrivate(95);
    verify();
  });
});
