import {
  PRIME32_1,
  PRIME32_2,
  PRIME32_3,
  PRIME64_1,
  PRIME64_2,
  PRIME64_3,
  PRIME64_4,
  PRIME64_5,
  SECRET_BYTES,
  SEEDED,
  avalanche,
  mix,
} from "./xxh3-mix";

// The long class of XXH3: stripes of 64 bytes are added up in eight accumulators, two to a vector, under the secret
// with the seed worked in.
//
//   ├─ stripe ─┼─ stripe ─┼ … ┼─ sixteenth ─┼─ scramble ─┼─ stripe ─┼ …
//   secret + 0   + 8            + 120          + 128        + 0
//
// The last 64 bytes are added once more at the end, whatever stripes they lie in, under secret + 121.

@inline export const STRIPE_BYTES: usize = 64;
@inline const SECRET_STEP: usize = 8;
@inline const BLOCK_STRIPES: usize = 16;
/** The bytes from one scrambling to the next. */
@inline export const BLOCK_BYTES: usize = BLOCK_STRIPES * STRIPE_BYTES;
@inline const SCRAMBLE: usize = SECRET_BYTES - STRIPE_BYTES;
@inline const LAST: usize = SCRAMBLE - 7;
@inline const MERGE: usize = 11;
if (BLOCK_STRIPES * SECRET_STEP != SCRAMBLE) ERROR("A block reads the whole secret");

const START: usize = memory.data<u64>(
  [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1],
  16,
);
const SUMS: usize = memory.data(64, 16);

/** Begins the hash of a long input. */
export function begin(): void {
  copyStripe(SUMS, START);
}

/** Copies 64 bytes; `memory.copy` would leave the module for so few. */
export function copyStripe(to: usize, from: usize): void {
  v128.store(to, v128.load(from, 0), 0);
  v128.store(to, v128.load(from, 16), 16);
  v128.store(to, v128.load(from, 32), 32);
  v128.store(to, v128.load(from, 48), 48);
}

/** Adds whole blocks, which are not the end of the input. */
export function add(at: usize, bytes: usize): void {
  for (const end = at + bytes; at < end; at += BLOCK_BYTES) {
    addStripes(at, SEEDED, BLOCK_STRIPES);
    scramble();
  }
}

/** Adds the end of the input, one byte of it or more. Its last 64 bytes are read even where they begin before `at`. */
export function finish(at: usize, bytes: usize, total: u64): u64 {
  const blocks = (bytes - 1) & ~(BLOCK_BYTES - 1);
  add(at, blocks);
  addStripes(at + blocks, SEEDED, (bytes - 1 - blocks) / STRIPE_BYTES);
  addStripes(at + bytes - STRIPE_BYTES, SEEDED + LAST, 1);
  let sum = total * PRIME64_1;
  for (let offset: usize = 0; offset < STRIPE_BYTES; offset += 16) {
    sum += mix(SUMS + offset, SEEDED + MERGE + offset, 0);
  }
  return avalanche(sum);
}

// Adds stripes, first to the one half of the accumulators and then to the other. To an accumulator goes the product of
// the halves of its word, mixed with the secret, and to its neighbour in the vector the word as it is.
function addStripes(at: usize, secret: usize, stripes: usize): void {
  for (let half: usize = 0; half < STRIPE_BYTES; half += STRIPE_BYTES / 2) {
    let a = v128.load(SUMS + half);
    let b = v128.load(SUMS + half, 16);
    let from = at + half;
    let key = secret + half;
    for (let left = stripes; left > 0; left--, from += STRIPE_BYTES, key += SECRET_STEP) {
      const x = v128.load(from);
      const y = v128.load(from, 16);
      const p = v128.xor(x, v128.load(key));
      const q = v128.xor(y, v128.load(key, 16));
      const low = v128.shuffle<u32>(p, q, 0, 2, 4, 6);
      const high = v128.shuffle<u32>(p, q, 1, 3, 5, 7);
      a = i64x2.add(i64x2.add(a, v128.shuffle<u64>(x, x, 1, 0)), i64x2.extmul_low_i32x4_u(low, high));
      b = i64x2.add(i64x2.add(b, v128.shuffle<u64>(y, y, 1, 0)), i64x2.extmul_high_i32x4_u(low, high));
    }
    v128.store(SUMS + half, a);
    v128.store(SUMS + half, b, 16);
  }
}

function scramble(): void {
  for (let offset: usize = 0; offset < STRIPE_BYTES; offset += 16) {
    const sums = v128.load(SUMS + offset);
    const mixed = v128.xor(v128.xor(sums, i64x2.shr_u(sums, 47)), v128.load(SEEDED + SCRAMBLE + offset));
    v128.store(SUMS + offset, i64x2.mul(mixed, i64x2.splat(PRIME32_1)));
  }
}
