import { begin, finish } from "./xxh3-long";
import {
  PRIME64_1,
  PRIME64_2,
  PRIME64_3,
  PRIME_MIX_2,
  SECRET,
  SEEDED,
  avalanche,
  fold,
  foldHere,
  mix,
  mixBoth,
  seed,
  swapBytes,
} from "./xxh3-mix";

export { use } from "./xxh3-mix";

// XXH3 with a seed, 64 bits, as published with xxHash (xxhash.com): a formula for each class of lengths, all of them
// drawing on a secret of 192 bytes.
//
//   0  1 to 3  4 to 8  9 to 16   17 to 128            129 to 240           longer
//   ├──┴───────┴───────┴─────────┼────────────────────┼────────────────────┼────────────────────
//     two or three reads that      16 bytes from each   16 after 16 bytes,   stripes of 64 bytes,
//     meet or overlap              end inwards          and the last 16      in xxh3-long.ts
//
// The long class wants a secret with the seed worked in. It is made once for all inputs of a seed, by `use`; the second
// class and half of the third, which are told to work the seed in as they go, find the same sums there.

/** The seed of sequence hashes. */
@inline const CHAIN_SEED: u64 = 1337;

// Words 3 to 6 of the secret, as the class up to 16 bytes uses them.
@inline const FLIP_FIRST: u64 = 0x1f67b3b7a4a44072 ^ 0x78e5c0cc4ee679cb;
@inline const FLIP_SECOND: u64 = 0x2172ffcc7dd05a82 ^ 0x8e2443f7744608b8;

/** Hashes so many bytes from an address on. */
export function hash(at: usize, length: usize): u64 {
  if (length <= 16) return hashEnds(at, length);
  if (length <= 128) return hashPairs(at, length);
  if (length <= 240) return hashRow(at, length);
  begin();
  return finish(at, length, length);
}

/** Hashes 64 bytes: sixteen tokens, the block size of most engines. */
@inline export function hash64(at: usize): u64 {
  const outer = mixBoth(at, SEEDED, at + 48, SEEDED + 16);
  return sumBoth(64, i64x2.add(outer, mixBoth(at + 16, SEEDED + 32, at + 32, SEEDED + 48)));
}

/** Hashes two words under the seed of sequence hashes, whatever the seed of the rest is. */
@inline export function hashTwo(first: u64, second: u64): u64 {
  const a = first ^ (FLIP_FIRST + CHAIN_SEED);
  const b = second ^ (FLIP_SECOND - CHAIN_SEED);
  return avalanche(16 + swapBytes(a) + b + foldHere(a, b));
}

function hashEnds(at: usize, length: usize): u64 {
  const last = at + length;
  if (length > 8) {
    const a = load<u64>(at) ^ (FLIP_FIRST + seed);
    const b = load<u64>(last - 8) ^ (FLIP_SECOND - seed);
    return avalanche(length + swapBytes(a) + b + fold(a, b));
  }
  if (length >= 4) {
    const flip = (load<u64>(SECRET, 8) ^ load<u64>(SECRET, 16)) - (seed ^ (<u64>bswap<u32>(<u32>seed) << 32));
    const ends = (<u64>load<u32>(last - 4) | (<u64>load<u32>(at) << 32)) ^ flip;
    const mixed = (ends ^ rotl<u64>(ends, 49) ^ rotl<u64>(ends, 24)) * PRIME_MIX_2;
    const again = (mixed ^ ((mixed >> 35) + length)) * PRIME_MIX_2;
    return again ^ (again >> 28);
  }
  if (length == 0) return avalancheTiny(seed ^ load<u64>(SECRET, 56) ^ load<u64>(SECRET, 64));
  const ends = (<u32>load<u8>(at) << 16) | <u32>load<u8>(last - 1);
  const inner = (<u32>load<u8>(at + (length >> 1)) << 24) | (<u32>length << 8);
  return avalancheTiny(<u64>(ends | inner) ^ (<u64>(load<u32>(SECRET) ^ load<u32>(SECRET, 4)) + seed));
}

function avalancheTiny(sum: u64): u64 {
  const mixed = (sum ^ (sum >> 33)) * PRIME64_2;
  const again = (mixed ^ (mixed >> 29)) * PRIME64_3;
  return again ^ (again >> 32);
}

function hashPairs(at: usize, length: usize): u64 {
  const middle = at + ((length + 1) >> 1);
  let sums = i64x2.splat(0);
  let secret = SEEDED;
  for (let left = at, right = at + length - 16; left < middle; left += 16, right -= 16, secret += 32) {
    sums = i64x2.add(sums, mixBoth(left, secret, right, secret + 16));
  }
  return sumBoth(length, sums);
}

@inline function sumBoth(length: u64, sums: v128): u64 {
  return avalanche(length * PRIME64_1 + i64x2.extract_lane(sums, 0) + i64x2.extract_lane(sums, 1));
}

// From the ninth piece on the secret is read from its fourth byte, where the seed has not been worked in.
function hashRow(at: usize, length: usize): u64 {
  let sum = length * PRIME64_1;
  let offset: usize = 0;
  for (; offset < 128; offset += 16) sum += mix(at + offset, SECRET + offset, seed);
  sum = avalanche(sum);
  for (; offset + 16 <= length; offset += 16) sum += mix(at + offset, SECRET + offset - 125, seed);
  return avalanche(sum + mix(at + length - 16, SECRET + 119, seed));
}
