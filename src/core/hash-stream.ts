import type { Hasher, TokenHashes } from "./hasher.js";

// How inputs of any length pass through the window of the hasher: as many blocks at a time as fit.

/** UTF-8 takes at most so many bytes for a UTF-16 unit. */
const UNIT_BYTES_MAX = 3;

/** Hashes the full blocks of some bytes. */
export function hashBytes(
  hasher: Hasher,
  bytes: Uint8Array,
  blockBytes: number,
  seed: bigint,
  parent: bigint | undefined,
): TokenHashes {
  const total = Math.floor(bytes.length / blockBytes);
  const atOnce = hasher.blocksAtOnce(blockBytes);
  const hashes = hasher.room(total);
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
  const pieces: TokenHashes[] = [];
  let previous = parent;
  let filled = 0; // bytes in the window: what the last round left, less than a block, and what this one adds
  let position = 0;
  do {
    const { read, written } = hasher.encode(pieceOf(text, position, end - filled), filled, end);
    position += read;
    filled += written;
    const count = Math.floor(filled / blockBytes);
    const piece = hasher.room(count);
    hasher.blocks(count, blockBytes, seed, previous);
    hasher.take(piece, 0, count);
    hasher.window.copyWithin(0, count * blockBytes, filled);
    filled -= count * blockBytes;
    if (count > 0) previous = piece.sequence[count - 1];
    pieces.push(piece);
  } while (position < text.length);
  return pieces.length === 1 ? (pieces[0] as TokenHashes) : join(hasher, pieces);
}

/**
 * The part of a text that may fit so many bytes: a UTF-16 unit takes at least one. It does not end in the first half of
 * a surrogate pair, which would be encoded as a lone one.
 */
function pieceOf(text: string, start: number, bytes: number): string {
  const end = start + bytes;
  if (end >= text.length) return start === 0 ? text : text.slice(start);
  const last = text.charCodeAt(end - 1);
  return text.slice(start, last >= 0xd800 && last <= 0xdbff ? end - 1 : end);
}

function join(hasher: Hasher, pieces: readonly TokenHashes[]): TokenHashes {
  const hashes = hasher.room(pieces.reduce((sum, piece) => sum + piece.local.length, 0));
  let done = 0;
  for (const { local, sequence } of pieces) {
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
