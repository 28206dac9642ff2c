import {
  ARENA,
  FREE,
  PRIVATE,
  SLOT_BYTES,
  SLOT_NUMBERS,
  Slot,
  at,
  expiring,
  freed,
  give,
  idOf,
  isExpiring,
  lengthen,
  nil,
  recycled,
  resolve,
  retired,
  slotOf,
  slots,
  some,
  take,
  ungive,
  untouched,
  vacant,
} from "../assembly/slots";
import { verify } from "../assembly/verify";
import { GENERATION_BITS, SLOT_BITS } from "../src/abi";
import { GENERATIONS, open } from "./support";

const A_GENERATION: f64 = <f64>(1 << SLOT_BITS);

let spent: Slot = nil();
let stopped: Slot = nil();
let last: Slot = nil();

function answers(id: f64): bool {
  return some(resolve(id));
}

// A slot that has generations left, so that freeing it does not retire it.
function takeYoung(): Slot {
  let slot = take();
  for (let left = slots; left > 0 && isExpiring(slot); left--) slot = take();
  return slot;
}

function giveAll(): void {
  for (let number = untouched - 1; number > 0; number--) if (at(number).state != FREE) give(at(number));
}

describe("slots", () => {
  beforeAll(() => {
    open(39);
  });

  it("a new pool has its sentinel, one slot a block, and all of them untouched", () => {
    expect(slots).toBe(40);
    expect(untouched).toBe(1);
    expect(vacant()).toBe(39);
    verify();
  });

  it("a slot is written when it is first taken, whatever the memory held", () => {
    memory.fill(ARENA + SLOT_BYTES, 0xff, SLOT_BYTES);
    const slot = take();
    expect(slot.number).toBe(1);
    expect(slot.generation).toBe(0);
    expect(slot.state).toBe(PRIVATE);
    expect(slot.claims).toBe(0);
    give(slot);
    verify();
  });

  it("a number and an address lead to each other", () => {
    for (let number: u32 = 0; number < slots; number++) {
      expect(at(number).number).toBe(number);
      expect(changetype<usize>(at(number))).toBe(ARENA + <usize>number * 32);
    }
  });

  it("the slot freed last is taken first, and untouched slots after all that were freed", () => {
    const a = take();
    const b = take();
    const c = take();
    give(a);
    give(c);
    give(b);
    expect(recycled).toBe(3);
    expect(take().number).toBe(b.number);
    expect(take().number).toBe(c.number);
    expect(take().number).toBe(a.number);
    expect(some(freed)).toBe(false);
    expect(take().number).toBe(4);
    give(at(4));
    give(c);
    give(b);
    give(a);
    verify();
  });

  it("what is vacant goes down with every slot taken and up with every slot freed", () => {
    const before = vacant();
    const recycledSlot = take();
    expect(vacant()).toBe(before - 1);
    for (let left = slots - 2; left > 0; left--) take();
    expect(vacant()).toBe(0);
    expect(untouched).toBe(slots);
    for (let number = slots - 1; number > 0; number--) if (number != recycledSlot.number) give(at(number));
    expect(vacant()).toBe(before - 1);
    give(recycledSlot);
    expect(vacant()).toBe(before);
    verify();
  });

  it("an id is the generation and the number in one double", () => {
    const slot = take();
    const generation = slot.generation;
    expect(idOf(slot)).toBe(<f64>generation * A_GENERATION + <f64>slot.number);
    give(slot);
    expect(take().generation).toBe(generation + 1);
    expect(idOf(slot)).toBe(<f64>(generation + 1) * A_GENERATION + <f64>slot.number);
    give(slot);
    verify();
  });

  it("the greatest id is exact in a double", () => {
    expect(SLOT_BITS + GENERATION_BITS).toBe(53);
    const slot = at(1);
    const stamp = slot.stamp;
    slot.stamp = ((1 << GENERATION_BITS) - 1) << 2; // its two lower bits are the state
    const id = idOf(slot);
    slot.stamp = stamp;
    expect(id).toBe(9007199254740992.0 - A_GENERATION + 1);
    verify();
  });

  it("an id answers while its copy lives and never again", () => {
    const slot = take();
    const id = idOf(slot);
    expect(resolve(id) == slot).toBe(true);
    give(slot);
    expect(answers(id)).toBe(false);
    expect(take() == slot).toBe(true);
    expect(answers(id)).toBe(false);
    expect(resolve(idOf(slot)) == slot).toBe(true);
    give(slot);
    verify();
  });

  it("no double but a live id answers", () => {
    const slot = take();
    const id = idOf(slot);
    expect(answers(id)).toBe(true);
    expect(answers(id + 0.5)).toBe(false);
    expect(answers(id - 0.5)).toBe(false);
    expect(answers(-id)).toBe(false);
    expect(answers(id + A_GENERATION)).toBe(false);
    expect(answers(id + A_GENERATION * <f64>GENERATIONS)).toBe(false);
    expect(answers(id + 9007199254740992.0)).toBe(false);
    expect(answers(id + 18446744073709551616.0)).toBe(false);
    expect(answers(NaN)).toBe(false);
    expect(answers(Infinity)).toBe(false);
    expect(answers(-Infinity)).toBe(false);
    expect(answers(0)).toBe(false);
    expect(answers(-0.0)).toBe(false);
    expect(answers(A_GENERATION)).toBe(false);
    expect(answers(<f64>(slots - 1))).toBe(false);
    expect(answers(<f64>slots)).toBe(false);
    expect(answers(A_GENERATION - 1)).toBe(false);
    give(slot);
    verify();
  });

  it("a slot that was freed last can be had back with its id", () => {
    const a = take();
    const b = take();
    const id = idOf(b);
    const before = vacant();
    give(a);
    give(b);
    ungive(b);
    expect(b.state).toBe(PRIVATE);
    expect(resolve(id) == b).toBe(true);
    expect(freed == a).toBe(true);
    ungive(a);
    expect(vacant()).toBe(before);
    expect(expiring).toBe(0);
    give(a);
    give(b);
    verify();
  });

  it("a slot that was never taken answers to nothing, whatever the memory holds", () => {
    lengthen(slots + 2);
    const beyond = at(slots - 1);
    beyond.stamp = PRIVATE;
    expect(answers(idOf(beyond))).toBe(false);
    for (let left = vacant(); left > 0; left--) take();
    expect(answers(idOf(beyond))).toBe(true);
    giveAll();
  });

  it("a slot is found by the number of an id, whatever its generation", () => {
    expect(slotOf(7).number).toBe(7);
    expect(slotOf(7 + A_GENERATION * 536870911).number).toBe(7);
    expect(slotOf(A_GENERATION * 3).number).toBe(0);
  });

  it("a copy is expiring in the last generation of its slot only", () => {
    const before = retired;
    spent = take();
    for (let generation = spent.generation; generation < GENERATIONS - 1; generation++) {
      expect(expiring).toBe(0);
      expect(isExpiring(spent)).toBe(false);
      give(spent);
      expect(take() == spent).toBe(true);
    }
    expect(expiring).toBe(1);
    expect(isExpiring(spent)).toBe(true);
    expect(retired).toBe(before);
    give(spent);
    ungive(spent);
    expect(expiring).toBe(1);
    expect(retired).toBe(before);
    give(spent);
    expect(expiring).toBe(0);
    expect(retired).toBe(before + 1);
  });

  it("a slot whose generations are spent never comes back", () => {
    expect(spent.generation).toBe(GENERATIONS);
    for (let left = vacant(); left > 0; left--) expect(take().number).not.toBe(spent.number);
    expect(vacant()).toBe(0);
    for (let generation: u32 = 0; generation <= GENERATIONS; generation++) {
      expect(answers(<f64>generation * A_GENERATION + <f64>spent.number)).toBe(false);
    }
  });

  it("retired slots are not vacant, and all others come back", () => {
    giveAll();
    expect(vacant()).toBe(slots - 1 - retired);
    expect(recycled).toBe(slots - 1 - retired);
  });

  it("a free slot cannot be freed again", () => {
    stopped = take();
    give(stopped);
    const before = vacant();
    expect(() => give(stopped)).toThrow();
    expect(vacant()).toBe(before);
  });

  it("only the slot freed last can be had back", () => {
    stopped = takeYoung();
    last = takeYoung();
    give(stopped);
    give(last);
    const stamp = stopped.stamp;
    expect(() => ungive(stopped)).toThrow("another was freed later");
    stopped.stamp = stamp;
    expect(take() == last).toBe(true);
    expect(() => ungive(last)).toThrow("it is not free");
    giveAll();
    expect(vacant()).toBe(slots - 1 - retired);
  });

  it("a slot that a batch counts on cannot be freed", () => {
    stopped = take();
    stopped.claims = 1;
    expect(() => give(stopped)).toThrow();
    stopped.claims = 0;
    give(stopped);
  });

  it("a copy in the free list is never handed out", () => {
    freed.state = PRIVATE;
    expect(() => {
      take();
    }).toThrow();
    freed.state = FREE;
  });

  it("the arena ends where its slots end", () => {
    expect(() => {
      at(slots);
    }).toThrow();
    expect(() => {
      slotOf(<f64>slots);
    }).toThrow();
  });

  it("the arena never gets shorter, nor longer than there are numbers", () => {
    const length = slots;
    expect(() => lengthen(slots - 1)).toThrow();
    expect(() => lengthen(SLOT_NUMBERS + 1)).toThrow();
    expect(slots).toBe(length);
    lengthen(SLOT_NUMBERS);
    expect(slots).toBe(4096);
  });
});
