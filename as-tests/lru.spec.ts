import { clear, inactive, link, sentinel, shift, unlink } from "../assembly/lru";
import { ACTIVE, INACTIVE, Slot, give, nil, take } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { open } from "./support";

let a: Slot = nil();
let b: Slot = nil();
let c: Slot = nil();
let d: Slot = nil();

// A copy that lost its last reference and pin.
function idle(hash: u64): Slot {
  const slot = take();
  slot.hash = hash;
  revive(slot);
  return slot;
}

function revive(slot: Slot): void {
  slot.state = ACTIVE;
  slot.refs = 0;
  slot.pins = 0;
}

// The list as its hashes, from the first victim on and back again; nine at most, so that a broken one ends.
function order(): string {
  let forwards = "";
  for (let slot = sentinel().next, left = 9; slot != sentinel() && left > 0; slot = slot.next, left--) {
    forwards += slot.hash.toString();
  }
  let backwards = "";
  for (let slot = sentinel().prev, left = 9; slot != sentinel() && left > 0; slot = slot.prev, left--) {
    backwards += slot.hash.toString();
  }
  return `${forwards}|${backwards}`;
}

describe("lru", () => {
  beforeAll(() => {
    open(10);
    a = idle(1);
    b = idle(2);
    c = idle(3);
    d = idle(4);
  });

  it("an empty list is its sentinel alone", () => {
    expect(sentinel().number).toBe(0);
    expect(sentinel().next == sentinel()).toBe(true);
    expect(sentinel().prev == sentinel()).toBe(true);
    expect(inactive).toBe(0);
  });

  it("the copy that joins last is evicted last", () => {
    link(a);
    expect(order()).toBe("1|1");
    link(b);
    expect(order()).toBe("12|21");
    link(c);
    link(d);
    expect(order()).toBe("1234|4321");
    expect(inactive).toBe(4);
  });

  it("a copy in the list is inactive, one that leaves it active and held by nobody", () => {
    expect(b.state).toBe(INACTIVE);
    unlink(b);
    expect(b.state).toBe(ACTIVE);
    expect(b.refs).toBe(0);
    expect(b.pins).toBe(0);
    link(b);
  });

  it("a copy in the middle leaves, and the others keep their order", () => {
    expect(order()).toBe("1342|2431");
    unlink(c);
    expect(order()).toBe("142|241");
    expect(inactive).toBe(3);
  });

  it("the first victim leaves, and the next one becomes the first", () => {
    unlink(a);
    expect(order()).toBe("42|24");
    expect(sentinel().next == d).toBe(true);
  });

  it("the last victim leaves, and the one before becomes the last", () => {
    unlink(b);
    expect(order()).toBe("4|4");
    expect(sentinel().prev == d).toBe(true);
  });

  it("the only copy leaves, and the list is empty", () => {
    unlink(d);
    expect(order()).toBe("|");
    expect(inactive).toBe(0);
  });

  it("a copy that is touched goes from wherever it was to the end", () => {
    link(a);
    link(b);
    link(c);
    unlink(a);
    link(a);
    expect(order()).toBe("231|132");
    unlink(a);
    link(a);
    expect(order()).toBe("231|132");
    unlink(c);
    link(c);
    expect(order()).toBe("213|312");
  });

  it("joining and leaving keep the generation and the hash of a copy", () => {
    const generation = a.generation;
    unlink(a);
    link(a);
    expect(a.generation).toBe(generation);
    expect(a.hash).toBe(1);
  });

  it("the first victim is taken out as it is, to be freed", () => {
    expect(order()).toBe("231|132");
    expect(shift() == b).toBe(true);
    expect(b.state).toBe(INACTIVE);
    expect(order()).toBe("31|13");
    expect(inactive).toBe(2);
    expect(shift() == c).toBe(true);
    expect(shift() == a).toBe(true);
    expect(order()).toBe("|");
    expect(inactive).toBe(0);
    expect(() => {
      shift();
    }).toThrow("there is no victim");
    expect(order()).toBe("|");
    expect(inactive).toBe(0);
    revive(a);
    revive(b);
    revive(c);
  });

  it("a list that is cleared is empty", () => {
    link(a);
    link(b);
    clear();
    expect(order()).toBe("|");
    expect(inactive).toBe(0);
    a.state = ACTIVE;
    b.state = ACTIVE;
  });

  it("a copy that somebody holds never joins", () => {
    a.refs = 1;
    a.pins = 0;
    expect(() => link(a)).toThrow("a reference");
    a.refs = 0;
    a.pins = 1;
    expect(() => link(a)).toThrow("a pin");
    a.pins = 0;
    expect(order()).toBe("|");
  });

  it("a copy joins once", () => {
    b.refs = 0;
    b.pins = 0;
    link(a);
    link(b);
    expect(() => link(b)).toThrow();
    expect(order()).toBe("12|21");
  });

  it("only a member leaves", () => {
    expect(() => unlink(d)).toThrow("it never joined");
    b.state = ACTIVE;
    expect(() => unlink(b)).toThrow("it says that it left");
    b.state = INACTIVE;
    expect(order()).toBe("12|21");
    expect(inactive).toBe(2);
  });

  it("a member leaves only if both neighbours agree that it is one", () => {
    a.next = sentinel();
    expect(() => unlink(b)).toThrow("the one before it");
    a.next = b;
    b.prev = sentinel();
    expect(() => {
      shift();
    }).toThrow("the one behind the first victim");
    b.prev = a;
    sentinel().prev = a;
    expect(() => unlink(b)).toThrow("the one behind it");
    sentinel().prev = b;
    expect(order()).toBe("12|21");
  });

  it("when all have left, the pool is whole", () => {
    unlink(b);
    unlink(a);
    give(a);
    give(b);
    give(c);
    give(d);
    verify();
  });
});
