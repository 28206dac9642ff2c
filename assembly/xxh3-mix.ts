// What the length classes of XXH3 have in common: the secret, and the ways to mix words into one another.

@inline export const SECRET_BYTES: usize = 192;

@inline export const PRIME32_1: u64 = 0x9e3779b1;
@inline export const PRIME32_2: u64 = 0x85ebca77;
@inline export const PRIME32_3: u64 = 0xc2b2ae3d;
@inline export const PRIME64_1: u64 = 0x9e3779b185ebca87;
@inline export const PRIME64_2: u64 = 0xc2b2ae3d27d4eb4f;
@inline export const PRIME64_3: u64 = 0x165667b19e3779f9;
@inline export const PRIME64_4: u64 = 0x85ebca77c2b2ae63;
@inline export const PRIME64_5: u64 = 0x27d4eb2f165667c5;
@inline export const PRIME_MIX_1: u64 = 0x165667919e3779f9;
@inline export const PRIME_MIX_2: u64 = 0x9fb21c651e98df25;

@inline const LOW_HALF: u64 = 0xffffffff;

/** The address of the secret, which is part of the algorithm. */
export const SECRET: usize = memory.data<u64>(
  [
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
  ],
  16,
);
/** The address of the secret with the seed worked in: added to its first word, taken from its second, and so on. */
export const SEEDED: usize = memory.data(192, 16);
/** The seed of the hashes that are made now. */
export let seed: u64 = 0;

/** Sets the seed of all hashes from now on. */
export function use(newSeed: u64): void {
  seed = newSeed;
  const change = i64x2.replace_lane(i64x2.splat(newSeed), 1, 0 - newSeed);
  for (let offset: usize = 0; offset < SECRET_BYTES; offset += 16) {
    v128.store(SEEDED + offset, i64x2.add(v128.load(SECRET + offset), change));
  }
}

/** Lets every bit of a sum bear on every bit of the hash. */
@inline export function avalanche(sum: u64): u64 {
  const mixed = (sum ^ (sum >> 37)) * PRIME_MIX_1;
  return mixed ^ (mixed >> 32);
}

/** Mixes 16 bytes with 16 of the secret and with a seed: 0 where the secret has it worked in. */
export function mix(at: usize, secret: usize, seed: u64): u64 {
  return fold(load<u64>(at) ^ (load<u64>(secret) + seed), load<u64>(at, 8) ^ (load<u64>(secret, 8) - seed));
}

/** Mixes 16 bytes, and 16 others, with 16 each of the secret. The sum of both lanes counts. */
@inline export function mixBoth(at: usize, secret: usize, otherAt: usize, otherSecret: usize): v128 {
  const x = v128.xor(v128.load(at), v128.load(secret));
  return foldBoth(x, v128.xor(v128.load(otherAt), v128.load(otherSecret)));
}

/** Multiplies two words to 128 bits, from their halves, and folds the product into one word. */
export function fold(a: u64, b: u64): u64 {
  return foldHere(a, b);
}

/** Does as `fold`, for the one loop that is worth the code. */
@inline export function foldHere(a: u64, b: u64): u64 {
  const low = (a & LOW_HALF) * (b & LOW_HALF);
  const one = (a >> 32) * (b & LOW_HALF);
  const other = (a & LOW_HALF) * (b >> 32);
  const middle = (low >> 32) + (one & LOW_HALF) + other;
  return ((middle << 32) | (low & LOW_HALF)) ^ ((a >> 32) * (b >> 32) + (one >> 32) + (middle >> 32));
}

// Folds the product of the two words of x, and that of the words of y, in a lane each. A wide multiplication takes its
// factors from the low or from the high half of its operands, so they hold halves of words of one kind in each.
@inline function foldBoth(x: v128, y: v128): v128 {
  const mask = i64x2.splat(LOW_HALF);
  const a = v128.shuffle<u32>(x, y, 0, 4, 1, 5); // low halves of the first words, then their high halves
  const b = v128.shuffle<u32>(x, y, 2, 6, 3, 7); // the same of the second words
  const c = v128.shuffle<u64>(b, b, 1, 0); // the same, high halves first
  const low = i64x2.extmul_low_i32x4_u(a, b);
  const high = i64x2.extmul_high_i32x4_u(a, b);
  const one = i64x2.extmul_high_i32x4_u(a, c);
  const other = i64x2.extmul_low_i32x4_u(a, c);
  const middle = i64x2.add(i64x2.add(i64x2.shr_u(low, 32), v128.and(one, mask)), other);
  const top = i64x2.add(i64x2.add(high, i64x2.shr_u(one, 32)), i64x2.shr_u(middle, 32));
  return v128.xor(i64x2.add(low, i64x2.shl(i64x2.add(one, other), 32)), top);
}

/** Turns the bytes of a word round. Through a vector that is three instructions, against a dozen shifts and masks. */
@inline export function swapBytes(word: u64): u64 {
  const bytes = i64x2.splat(word);
  return i64x2.extract_lane(i8x16.shuffle(bytes, bytes, 7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0), 0);
}
