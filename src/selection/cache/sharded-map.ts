/** With more entries than this for each shard, the number of shards doubles. */
const SHARD_ENTRIES = 512;

/** Characters at the end of an id that decide on its shard. */
const ENDING = 8;

/**
 * A map from ids, spread over several small ones.
 *
 * Under inserts and deletes V8 makes the table of a `Map` anew after every so many deletes, and a table of more than
 * 128 KB, 4,096 entries' worth, is a page mapping of its own each time: measured, a third to half of the time of a whole
 * insert, peek and remove. Small tables come from the heap. The choice of a shard only has to be cheap: when all ids end
 * alike, one shard holds them all and is the plain `Map` again, whose own hash is seeded against chosen ids.
 */
export class ShardedMap<T> {
  #shards: Map<string, T>[] = [new Map()];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: string): T | undefined {
    return this.#shardOf(id).get(id);
  }

  /** Sets the value of an id and returns the one that it replaces. */
  put(id: string, value: T): T | undefined {
    const shard = this.#shardOf(id);
    const replaced = shard.get(id);
    shard.set(id, value);
    if (replaced === undefined) {
      this.#size++;
      if (this.#size > SHARD_ENTRIES * this.#shards.length) this.#spread();
    }
    return replaced;
  }

  /** Removes an id that is there. */
  delete(id: string): void {
    this.#shardOf(id).delete(id);
    this.#size--;
  }

  /** Lists the sizes of the shards, for tests that look inside. */
  inspect(): number[] {
    return this.#shards.map((shard) => shard.size);
  }

  #shardOf(id: string): Map<string, T> {
    return this.#shards[hashOfEnding(id) & (this.#shards.length - 1)] as Map<string, T>; // the length is a power of two
  }

  #spread(): void {
    const before = this.#shards;
    this.#shards = Array.from({ length: 2 * before.length }, () => new Map<string, T>());
    for (const shard of before) {
      for (const [id, value] of shard) this.#shardOf(id).set(id, value);
    }
  }
}

function hashOfEnding(id: string): number {
  let hash = 0;
  for (let at = Math.max(0, id.length - ENDING); at < id.length; at++) hash = Math.imul(hash, 31) + id.charCodeAt(at);
  const mixed = Math.imul(hash, 0x9e3779b1);
  return mixed ^ (mixed >>> 16);
}
