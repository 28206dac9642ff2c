/** Returns a generator of 32-bit integers (splitmix32): the same seed, the same numbers, on every machine. */
export function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
}

/** Returns `length` random 64-bit hashes. */
export function randomHashes(length: number, seed: number): BigUint64Array {
  const hashes = new BigUint64Array(length);
  const next = generator(seed);
  const words = new Uint32Array(hashes.buffer);
  for (let i = 0; i < words.length; i++) words[i] = next();
  return hashes;
}

/** Returns 0 … length - 1 in random order. */
export function randomOrder(length: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length }, (_, i) => i);
  const next = generator(seed);
  for (let i = length - 1; i > 0; i--) {
    const j = next() % (i + 1);
    const moved = order[i] as number;
    order[i] = order[j] as number;
    order[j] = moved;
  }
  return order;
}
