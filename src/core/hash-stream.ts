import type { Hasher, TokenHashes } from "./hasher.js";

// How inputs of any length pass through the window of the hasher: as many blocks at a time as fit.

/** UTF-8 takes at most so many bytes for a UTF-16 unit. */
const UNIT_BYTES_MAX = 3;

/** Hashes the full blocks of some bytes. Without local hashes, copying them is spared. */
export function hashBytes(
  hasher: Hasher,
  bytes: Uint8Array,
  blockBytes: number,
  seed: bigint,
  parent: bigint | undefined,
  withLocal = true,
): TokenHashes {
  const total = Math.floor(bytes.length / blockBytes);
  const atOnce = hasher.blocksAtOnce(blockBytes);
  const hashes = hasher.room(total, withLocal);
  for (let done = 0; done < total; ) {
    const count = Math.min(atOnce, total - done);
    const start = done * blockBytes;
    hasher.window.set(bytes.subarray(start, start + count * blockBytes));
    hasher.blocks(count, blockBytes, seed, done === 0 ? parent : hashes.sequence[done - 1]);
    hasher.take(hashes, done, count);
    done += count;
  }
  return hashes;
}

/** Hashes the full blocks of a text in UTF-8. How many there are shows only when all is encoded. */
export function hashString(
  hasher: Hasher,
  text: string,
  blockBytes: number,
  seed: bigint,
  parent: bigint | undefined,
): TokenHashes {
  const end = hasher.blocksAtOnce(blockBytes) * blockBytes;
  const parts: TokenHashes[] = [];
  let previous = parent;
  let filled = 0; // bytes in the window: what the last round left, less than a block, and what this one adds
  let position = 0;
  do {
    // As many UTF-16 units as there is room for bytes. A cut through a surrogate pair does no harm: the half before it
    // would take three bytes where one is left, so it is not read, and comes again with the other half.
    const piece = text.slice(position, position + end - filled);
    const { read, written } = hasher.encode(piece, filled, end);
    position += read;
    filled += written;
    const count = Math.floor(filled / blockBytes);
    const hashes = hasher.room(count);
    hasher.blocks(count, blockBytes, seed, previous);
    hasher.take(hashes, 0, count);
    hasher.window.copyWithin(0, count * blockBytes, filled);
    filled -= count * blockBytes;
    previous = hashes.sequence[count - 1]; // only the last round may have none
    parts.push(hashes);
  } while (position < text.length);
  return parts.length === 1 ? (parts[0] as TokenHashes) : join(hasher, parts);
}

function join(hasher: Hasher, parts: readonly TokenHashes[]): TokenHashes {
  const hashes = hasher.room(parts.reduce((sum, part) => sum + part.local.length, 0));
  let done = 0;
  for (const { local, sequence } of parts) {
    hashes.local.set(local, done);
    hashes.sequence.set(sequence, done);
    done += local.length;
  }
  return hashes;
}

/** Hashes bytes as a whole. */
export function hashWhole(hasher: Hasher, bytes: Uint8Array, seed: bigint): bigint {
  const atOnce = hasher.window.length;
  let done = 0;
  for (; bytes.length - done > atOnce; done += atOnce) {
    hasher.window.set(bytes.subarray(done, done + atOnce));
    hasher.part(done === 0, seed);
  }
  hasher.window.set(bytes.subarray(done));
  return done === 0 ? hasher.whole(bytes.length, seed) : hasher.end(bytes.length - done);
}

/** Hashes a text as a whole, in UTF-8. */
export function hashName(hasher: Hasher, text: string, seed: bigint): bigint {
  const end = hasher.window.length;
  if (text.length * UNIT_BYTES_MAX > end) return hashWhole(hasher, new TextEncoder().encode(text), seed);
  return hasher.whole(hasher.encode(text, 0, end).written, seed);
}
