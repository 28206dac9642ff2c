import { WORD_BYTES } from "../src/abi";
import { ARENA } from "./slots";
import { hash, hash64, hashTwo, use } from "./xxh3";
import { BLOCK_BYTES, STRIPE_BYTES, add, begin, copyStripe, finish } from "./xxh3-long";

// The verbs of an instance that hashes: it holds no pool, and everything it needs fits the first page of memory, which
// never grows. Longer inputs pass through the window part by part.
//
//   ├─ static data ─┼─ seed, parent ─┼─ local hashes ──┼─ sequence hashes ─┼─ … ─┼─ stripe before ─┼─ window ─┤
//   0               ARENA            + 2 words          + BLOCKS_MAX words          WINDOW - 64       WINDOW     64 KiB

@inline const BLOCKS_MAX: usize = 1536;
@inline const LOCAL: usize = ARENA + 2 * WORD_BYTES;
@inline const SEQUENCE: usize = LOCAL + BLOCKS_MAX * WORD_BYTES;
@inline const WINDOW: usize = ARENA + 28 * 1024;
@inline const WINDOW_BYTES: usize = 32 * 1024;
if (SEQUENCE + BLOCKS_MAX * WORD_BYTES > WINDOW - STRIPE_BYTES) ERROR("The hashes end before the window");
if (WINDOW_BYTES % BLOCK_BYTES != 0) ERROR("The window holds whole blocks of the long class");

/** The address of the words: seed, parent, local hashes, sequence hashes. */
export function hashWords(): usize {
  assert(__heap_base <= ARENA && WINDOW + WINDOW_BYTES <= <usize>memory.size() << 16); // all in the first page
  return ARENA;
}

/** How many blocks a batch may have. */
export function hashBlocksMax(): usize {
  return BLOCKS_MAX;
}

/** The address of the window, where inputs cross the border. */
export function hashWindow(): usize {
  return WINDOW;
}

/** The length of the window in bytes. */
export function hashWindowBytes(): usize {
  return WINDOW_BYTES;
}

/**
 * Hashes the blocks of equal length that fill the window from its start, each for itself and with all before it. The
 * first one continues from `parent` if it is `chained`.
 */
export function hashBlocks(count: usize, bytes: usize, chained: i32): void {
  assert(count <= BLOCKS_MAX && bytes <= WINDOW_BYTES && count * bytes <= WINDOW_BYTES);
  use(load<u64>(ARENA));
  let sequence = load<u64>(ARENA, WORD_BYTES);
  let at = WINDOW;
  for (let word = LOCAL, end = LOCAL + count * WORD_BYTES; word < end; word += WORD_BYTES, at += bytes) {
    const local = bytes == 64 ? hash64(at) : hash(at, bytes);
    sequence = chained ? hashTwo(sequence, local) : local;
    chained = 1;
    store<u64>(word, local);
    store<u64>(word + (SEQUENCE - LOCAL), sequence);
  }
}

// The bytes of a long input that have passed through the window.
let passed: u64 = 0;

/** Takes the whole window as a part of a long input that goes on after it. */
export function hashPart(first: i32): void {
  if (first) {
    use(load<u64>(ARENA));
    begin();
    passed = 0;
  }
  add(WINDOW, WINDOW_BYTES);
  copyStripe(WINDOW - STRIPE_BYTES, WINDOW + WINDOW_BYTES - STRIPE_BYTES);
  passed += WINDOW_BYTES;
}

/** Takes the last bytes of a long input, one or more, and leaves its hash where that of a single block would be. */
export function hashEnd(bytes: usize): void {
  assert(passed > 0 && bytes > 0 && bytes <= WINDOW_BYTES); // a short input is a block
  store<u64>(LOCAL, finish(WINDOW, bytes, passed + bytes));
  passed = 0;
}
