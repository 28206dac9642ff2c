import { append, isOldest, remove } from "../assembly/copies";
import { entries, erase, find, insert } from "../assembly/hash-index";
import { at, some } from "../assembly/slots";
import { verify } from "../assembly/verify";
import { open } from "./support";

// Chains read and write nothing of a slot but its hash and the links of its chain: the slots of these tests are never
// taken, so that `verify` expects none of them once the index is empty.

const HASH: u64 = 0xfeed;

/** Makes the slot of a number the youngest copy of a hash. */
function add(number: u32, hash: u64 = HASH): bool {
  at(number).hash = hash;
  return append(at(number));
}

/** Makes a chain of the slots from 1 to `count`. */
function chainOf(count: u32): void {
  for (let number: u32 = 1; number <= count; number++) add(number);
}

/** The chain of a hash from the oldest copy on; a link that does not lead back shows as "!". */
function chain(hash: u64 = HASH): string {
  let list = "";
  const oldest = find(hash);
  let youngest = oldest;
  for (let slot = oldest, left = 15; some(slot) && left > 0; slot = slot.younger, left--) {
    list += slot.number.toString();
    if (slot != oldest && slot.elder != youngest) list += "!";
    if (isOldest(slot) != (slot == oldest)) list += "?";
    youngest = slot;
  }
  return some(oldest) && oldest.elder != youngest ? `${list}!` : list;
}

/** A list of digits without one of them. */
function without(list: string, number: u32): string {
  return list.replace(number.toString(), "");
}

function expectNone(): void {
  expect(chain()).toBe("");
  expect(entries).toBe(0);
  verify();
}

describe("copies", () => {
  beforeAll(() => {
    open(15);
  });

  it("the first copy makes a hash visible, the others do not", () => {
    expect(chain()).toBe("");
    expect(add(1)).toBe(true);
    expect(chain()).toBe("1");
    expect(add(2)).toBe(false);
    expect(add(3)).toBe(false);
    expect(entries).toBe(1);
  });

  it("the copies of a hash stand in the order in which they were cached, and the index names the oldest", () => {
    expect(chain()).toBe("123");
    expect(find(HASH).number).toBe(1);
    expect(isOldest(at(1))).toBe(true);
    expect(isOldest(at(2))).toBe(false);
    expect(isOldest(at(3))).toBe(false);
  });

  it("the last copy that goes makes a hash invisible, the others do not", () => {
    expect(remove(at(1))).toBe(false);
    expect(remove(at(3))).toBe(false);
    expect(chain()).toBe("2");
    expect(remove(at(2))).toBe(true);
    expectNone();
  });

  it("a hash that was invisible becomes visible again", () => {
    expect(add(2)).toBe(true);
    expect(remove(at(2))).toBe(true);
    expect(add(1)).toBe(true);
    expect(remove(at(1))).toBe(true);
    expectNone();
  });

  it("when the oldest goes, the next one becomes the oldest", () => {
    chainOf(5);
    remove(at(1));
    expect(chain()).toBe("2345");
    expect(entries).toBe(1);
    remove(at(2));
    expect(chain()).toBe("345");
  });

  it("when one in the middle goes, the others keep their order", () => {
    remove(at(4));
    expect(chain()).toBe("35");
  });

  it("when the youngest goes, the next copy follows the one before it", () => {
    remove(at(5));
    expect(chain()).toBe("3");
    add(7);
    expect(chain()).toBe("37");
    remove(at(7));
    add(8);
    add(9);
    expect(chain()).toBe("389");
    remove(at(9));
    add(2);
    expect(chain()).toBe("382");
    remove(at(3));
    remove(at(2));
    remove(at(8));
    expectNone();
  });

  it("a copy that comes back is the youngest", () => {
    chainOf(3);
    remove(at(1));
    expect(add(1)).toBe(false);
    expect(chain()).toBe("231");
    remove(at(3));
    expect(add(3)).toBe(false);
    expect(chain()).toBe("213");
    for (let number: u32 = 1; number <= 3; number++) remove(at(number));
    expectNone();
  });

  it("in whatever order five copies go, those that stay keep theirs", () => {
    for (let order: u32 = 0; order < 120; order++) {
      chainOf(5);
      let left = "12345";
      for (let choices: u32 = 5, code = order; choices > 0; choices--) {
        const number = <u32>(left.charCodeAt(code % choices) - 48);
        code /= choices;
        left = without(left, number);
        expect(remove(at(number))).toBe(left == "");
        expect(chain()).toBe(left);
      }
    }
    expectNone();
  });

  it("chains of different hashes leave each other alone", () => {
    for (let number: u32 = 1; number <= 9; number++) add(number, number % 3);
    expect(entries).toBe(3);
    remove(at(1));
    remove(at(5));
    remove(at(9));
    expect(chain(0)).toBe("36");
    expect(chain(1)).toBe("47");
    expect(chain(2)).toBe("28");
    for (let number: u32 = 2; number <= 8; number++) if (number != 5) remove(at(number));
    expectNone();
  });

  it("a copy that is its own elder cannot have a younger one", () => {
    chainOf(2);
    at(1).elder = at(1);
    expect(() => {
      remove(at(1));
    }).toThrow();
    at(1).elder = at(2);
    expect(chain()).toBe("12");
    remove(at(1));
    remove(at(2));
    expectNone();
  });

  it("a copy outside the index cannot be the oldest that goes", () => {
    chainOf(2);
    erase(at(1));
    expect(() => {
      remove(at(1));
    }).toThrow();
    insert(at(1));
    expect(chain()).toBe("12");
    remove(at(2));
    remove(at(1));
    expectNone();
  });
});
