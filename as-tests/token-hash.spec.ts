import { ARENA } from "../assembly/slots";
import {
  hashBlocks,
  hashBlocksMax,
  hashEnd,
  hashPart,
  hashWindow,
  hashWindowBytes,
  hashWords,
} from "../assembly/token-hash";
import { hash, hashTwo, use } from "../assembly/xxh3";

const SEED: u64 = 0xfedcba9876543210;
const PARENT: u64 = 0x0123456789abcdef;
const PAGE: usize = 65536;
const RUNNER_BYTES: usize = 8 << 20;

const longInput: usize = memory.data(100000);

function words(): usize {
  return ARENA;
}

function localAt(index: usize): u64 {
  return load<u64>(words() + (2 + index) * 8);
}

function sequenceAt(index: usize): u64 {
  return load<u64>(words() + (2 + hashBlocksMax() + index) * 8);
}

function setWords(seed: u64, parent: u64): void {
  store<u64>(words(), seed);
  store<u64>(words(), parent, 8);
}

function fill(at: usize, length: usize): void {
  for (let i: usize = 0; i < length; i++) store<u8>(at + i, <u8>(i * i * 31 + i * 131 + 146));
}

/** Counts the blocks whose hashes are not those of the rule. */
function wrong(count: usize, bytes: usize, chained: bool): u32 {
  setWords(SEED, PARENT);
  hashBlocks(count, bytes, chained);
  let wrong: u32 = 0;
  let sequence = PARENT;
  use(SEED);
  for (let index: usize = 0; index < count; index++) {
    const local = hash(hashWindow() + index * bytes, bytes);
    sequence = index > 0 || chained ? hashTwo(sequence, local) : local;
    wrong += u32(localAt(index) != local) + u32(sequenceAt(index) != sequence);
  }
  return wrong;
}

/** The hash of a long input that passes through the window. */
function inParts(length: usize): u64 {
  setWords(SEED, 0);
  let done: usize = 0;
  for (; length - done > hashWindowBytes(); done += hashWindowBytes()) {
    memory.copy(hashWindow(), longInput + done, hashWindowBytes());
    hashPart(done == 0);
  }
  memory.copy(hashWindow(), longInput + done, length - done);
  hashEnd(length - done);
  return localAt(0);
}

function atOnce(length: usize): u64 {
  use(SEED);
  return hash(longInput, length);
}

describe("token hash", () => {
  beforeAll(() => {
    heap.free(heap.alloc(RUNNER_BYTES)); // the runner's own, below the arena of this build
  });

  it("memory that ends before the window does is noticed", () => {
    expect(() => {
      hashWords();
    }).toThrow("the window is not there yet");
  });

  it("everything stands in one page from the start of the arena's page, and ends with it", () => {
    memory.grow(<i32>((ARENA + PAGE) / PAGE) - memory.size());
    expect(hashWords()).toBe(ARENA);
    expect(hashWindow() - hashWords()).toBe(28 * 1024);
    expect(hashWindowBytes()).toBe(32 * 1024);
    expect<usize>(<usize>4096 + 28 * 1024 + hashWindowBytes()).toBe(PAGE); // where the arena starts in the core that ships
    expect(hashWords() + (2 + 2 * hashBlocksMax()) * 8).toBeLessThanOrEqual(hashWindow() - 64);
  });

  it("every block is hashed for itself and with what stands before it", () => {
    fill(hashWindow(), hashWindowBytes());
    for (let bytes: usize = 0; bytes < 300; bytes++) {
      expect(wrong(5, bytes, false)).toBe(0);
      expect(wrong(5, bytes, true)).toBe(0);
    }
    expect(wrong(2, 16384, true)).toBe(0);
    expect(wrong(1, 32768, false)).toBe(0);
  });

  it("a batch may be as long as the window, and as the room for hashes", () => {
    expect(wrong(hashWindowBytes() / 64, 64, true)).toBe(0);
    expect(wrong(hashBlocksMax(), 4, false)).toBe(0);
    expect(wrong(hashBlocksMax(), 21, true)).toBe(0);
    expect(wrong(0, 64, true)).toBe(0);
  });

  it("a batch longer than either is refused", () => {
    expect(() => {
      hashBlocks(hashBlocksMax() + 1, 4, 0);
    }).toThrow("no room for the hashes");
    expect(() => {
      hashBlocks(513, 64, 0);
    }).toThrow("the window ends before");
    expect(() => {
      hashBlocks(2, 0x80000000, 0);
    }).toThrow("the memory ends before, where the product is 0 in 32 bits");
  });

  it("a batch writes its hashes and nothing beside them", () => {
    const end = hashWindow() - hashWords();
    memory.fill(words(), 0xaa, end);
    setWords(SEED, PARENT);
    hashBlocks(3, 64, 1);
    expect(load<u64>(words())).toBe(SEED);
    expect(load<u64>(words(), 8)).toBe(PARENT);
    expect(localAt(3)).toBe(0xaaaaaaaaaaaaaaaa);
    expect(sequenceAt(3)).toBe(0xaaaaaaaaaaaaaaaa);
    let touched: u32 = 0;
    for (let offset: usize = 0; offset < end; offset += 8) {
      touched += u32(load<u64>(words() + offset) != 0xaaaaaaaaaaaaaaaa);
    }
    expect(touched).toBe(2 + 2 * 3);
  });

  it("a long input in parts has the hash of the whole", () => {
    fill(longInput, 100000);
    for (let length: usize = 32769; length < 32769 + 1100; length += 13) expect(inParts(length)).toBe(atOnce(length));
    for (let length: usize = 65536; length < 65536 + 70; length++) expect(inParts(length)).toBe(atOnce(length));
    expect(inParts(98304)).toBe(atOnce(98304));
    expect(inParts(98305)).toBe(atOnce(98305));
    expect(inParts(100000)).toBe(atOnce(100000));
  });

  it("a long input that was given up leaves nothing behind", () => {
    setWords(0, 0);
    hashPart(1);
    hashPart(0);
    expect(inParts(40000)).toBe(atOnce(40000));
  });

  it("a part reads no further back than a stripe, and what stands there is its own", () => {
    memory.fill(hashWindow() - 64, 0xff, 64);
    expect(inParts(32769)).toBe(atOnce(32769));
    expect(memory.compare(hashWindow() - 64, longInput + 32768 - 64, 64)).toBe(0);
  });

  it("an end without parts, without bytes or beyond the window is refused", () => {
    expect(() => {
      hashEnd(1);
    }).toThrow("no part came before");
    hashPart(1);
    expect(() => {
      hashEnd(0);
    }).toThrow("the last part was the end");
    expect(() => {
      hashEnd(hashWindowBytes() + 1);
    }).toThrow("the window ends before");
  });

  it("memory has not grown", () => {
    expect(memory.size()).toBe(<i32>((ARENA + PAGE) / PAGE));
  });
});
