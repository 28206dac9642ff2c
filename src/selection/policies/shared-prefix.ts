/** So many different blocks after a block say that it belongs to what prompts share. */
export const FAN_OUT_DEFAULT = 4;
export const FAN_OUT_MAX = 64;
/** Blocks that are remembered with what came after them. */
export const LEARNT_BLOCKS_DEFAULT = 16_384;
export const LEARNT_BLOCKS_MAX = 16_777_215;
/** Further in than this nothing is learnt. */
export const LEARNT_DEPTH = 64;

/**
 * Learns where the prefix ends that different conversations share, such as a system prompt: at the last block that was seen
 * with several different blocks after it. How often a block is seen says nothing: a busy conversation's own prefix is seen
 * often too. Of the blocks it knows, those that were seen longest ago go.
 */
export class SharedPrefix {
  readonly #fanOut: number;
  readonly #blocksMax: number;
  /** What came after each block, in the order of use, as a Map keeps the order of insertion. */
  readonly #followers = new Map<bigint, bigint[]>();

  constructor(fanOut: number, blocksMax: number) {
    this.#fanOut = fanOut;
    this.#blocksMax = blocksMax;
  }

  /** Counts the blocks that are remembered. */
  get size(): number {
    return this.#followers.size;
  }

  /**
   * Learns from a prompt, and finds the first block after what it shares with others; the last one where it has no more.
   *
   * @param hashes sequence hashes, one or more
   */
  firstOwn(hashes: BigUint64Array): bigint {
    const depth = Math.min(hashes.length, LEARNT_DEPTH);
    let own = 0;
    for (let at = 0; at < depth; at++) {
      if (this.#learn(hashes[at] as bigint, hashes[at + 1])) own = at + 1;
    }
    return hashes[Math.min(own, hashes.length - 1)] as bigint;
  }

  /** Learns what came after a block. Returns whether the block is shared. */
  #learn(hash: bigint, follower: bigint | undefined): boolean {
    const followers = this.#followers.get(hash) ?? [];
    if (follower !== undefined && followers.length < this.#fanOut && !followers.includes(follower)) {
      followers.push(follower);
    }
    this.#followers.delete(hash); // so that it is put at the end
    this.#followers.set(hash, followers);
    if (this.#followers.size > this.#blocksMax) this.#followers.delete(this.#followers.keys().next().value as bigint);
    return followers.length >= this.#fanOut;
  }
}
