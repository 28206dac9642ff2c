/** Tokens that `mixedToken` chooses from: as many as the vocabulary of Llama 2. */
export const VOCABULARY = 32_000;

/** Makes a token of an answer up: the same prompt gives the same tokens in every engine. */
export function mixedToken(seed: bigint, index: number): number {
  return mix(seed, index) % VOCABULARY;
}

/** Mixes a seed and an index to 32 bits (the finaliser of MurmurHash3, Austin Appleby). */
export function mix(seed: bigint, index: number): number {
  let bits = Number(seed & 0xffff_ffffn) ^ Math.imul(index + 1, 0x9e37_79b1);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
