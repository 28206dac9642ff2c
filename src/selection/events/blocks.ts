import type { SequenceHash } from "../../core/keys.js";
import type { EngineHash, EngineKey } from "./event.js";
import { keyOf } from "./event.js";

/** What a chain of blocks is hashed with beside its tokens. */
export interface Scope {
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
}

/** A block that an engine holds: what the engine calls it, and what it is called in the index. */
export class Block {
  older: Block = this;
  newer: Block = this;

  constructor(
    readonly holder: BlockHolder,
    readonly key: EngineKey,
    /** `null`: tokens alone do not identify the block, so that it is known but not indexed. */
    readonly sequence: SequenceHash | null,
    readonly scope: Scope,
  ) {}
}

/** The blocks of one holder by the engine's hashes. */
export interface BlockHolder {
  readonly blocks: Map<EngineKey, Block>;
}

/**
 * Leads from the engines' hashes to ours, for all ranks together, in order of announcement.
 *
 * It holds at most `maxBlocks`: when it is full, the block that was announced the longest time ago is forgotten.
 */
export class BlockTable {
  readonly #maxBlocks: number;
  /** The ring of all blocks; its newer neighbour is the oldest block. */
  readonly #ends = new Block({ blocks: new Map() }, 0n, null, { loraName: null, cacheSalt: null });
  #size = 0;

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes a block in, in place of any that its holder has under the same key, and gives the one that had to go. */
  put(block: Block): Block | null {
    this.take(block.holder, block.key);
    block.holder.blocks.set(block.key, block);
    this.#link(block);
    return this.#size > this.#maxBlocks ? this.#forget(this.#ends.newer) : null;
  }

  /** Takes a block out; `null` if the holder has none of this name. */
  take(holder: BlockHolder, hash: EngineHash): Block | null {
    const block = holder.blocks.get(keyOf(hash));
    return block === undefined ? null : this.#forget(block);
  }

  /** Takes all blocks of a holder out. */
  clear(holder: BlockHolder): void {
    for (const block of holder.blocks.values()) this.#unlink(block);
    holder.blocks.clear();
  }

  #forget(block: Block): Block {
    block.holder.blocks.delete(block.key);
    this.#unlink(block);
    return block;
  }

  #link(block: Block): void {
    const last = this.#ends.older;
    block.older = last;
    block.newer = this.#ends;
    last.newer = block;
    this.#ends.older = block;
    this.#size++;
  }

  #unlink(block: Block): void {
    block.older.newer = block.newer;
    block.newer.older = block.older;
    block.older = block;
    block.newer = block;
    this.#size--;
  }
}
