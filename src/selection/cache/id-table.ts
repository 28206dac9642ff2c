/** What a table keeps, by id. The two fields at the end are the table's own; they start as 0 and null. */
export interface Identified<T> {
  readonly id: string;
  idHash: number;
  /** The next entry of the same bucket. */
  chained: T | null;
}

/** A power of two. */
const BUCKETS_MIN = 8;

/** With fewer entries than one in so many buckets, half of the buckets go. */
const SPARSE = 8;

/** Characters at the end of an id that decide on its bucket. */
const ENDING = 8;

/** Entries of one bucket. What finds it full goes to a `Map`, whose hash is seeded against chosen ids. */
const CHAIN_MAX = 8;

/**
 * A hash table of entries by id.
 *
 * A `Map` would do, but makes its table anew after every so many deletes, and once the heap has aged, each table that it
 * leaves behind keeps alive what stood in it, entries with all their hashes, until the next collection of the whole heap:
 * measured, two to four times the time of an insert, peek and remove. Here a place is overwritten when its entry leaves.
 * The hash only has to be cheap. Ids that end alike, by chance or malice, meet in one bucket, and then in the `Map`.
 */
export class IdTable<T extends Identified<T>> {
  #buckets: (T | null)[] = new Array<T | null>(BUCKETS_MIN).fill(null);
  #overflow: Map<string, T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: string): T | undefined {
    return this.#find(id, hashOfEnding(id));
  }

  /** Adds an entry and returns the one that had its id, which leaves. */
  put(entry: T): T | undefined {
    entry.idHash = hashOfEnding(entry.id);
    const replaced = this.#find(entry.id, entry.idHash);
    if (replaced !== undefined) this.delete(replaced);
    this.#add(entry);
    this.#size++;
    if (this.#size > this.#buckets.length) this.#resize(2 * this.#buckets.length);
    return replaced;
  }

  /** Removes an entry that is there. */
  delete(entry: T): void {
    if (!this.#overflow?.delete(entry.id)) this.#unchain(entry);
    this.#size--;
    const { length } = this.#buckets;
    if (length > BUCKETS_MIN && this.#size < length / SPARSE) this.#resize(length / 2);
  }

  /** Counts the entries of each bucket and of the overflow, for tests that look inside. */
  inspect(): { buckets: number[]; overflow: number } {
    return { buckets: this.#buckets.map(lengthOf), overflow: this.#overflow?.size ?? 0 };
  }

  #unchain(entry: T): void {
    const bucket = this.#bucketOf(entry.idHash);
    let before: T | null = null;
    for (let other = this.#buckets[bucket] as T; other !== entry; other = other.chained as T) before = other;
    if (before === null) this.#buckets[bucket] = entry.chained;
    else before.chained = entry.chained;
    entry.chained = null; // what has gone must keep nothing alive
  }

  #find(id: string, hash: number): T | undefined {
    for (let entry = this.#headOf(hash); entry !== null; entry = entry.chained) {
      if (entry.idHash === hash && entry.id === id) return entry;
    }
    return this.#overflow?.get(id);
  }

  #add(entry: T): void {
    const head = this.#headOf(entry.idHash);
    if (lengthOf(head) < CHAIN_MAX) {
      entry.chained = head;
      this.#buckets[this.#bucketOf(entry.idHash)] = entry;
    } else {
      this.#overflow ??= new Map();
      this.#overflow.set(entry.id, entry);
    }
  }

  #bucketOf(hash: number): number {
    return hash & (this.#buckets.length - 1); // the length is a power of two
  }

  #headOf(hash: number): T | null {
    return this.#buckets[this.#bucketOf(hash)] as T | null;
  }

  // What is in the overflow stays there: entries do not stay for long, and ids that ended alike still do.
  #resize(length: number): void {
    const before = this.#buckets;
    this.#buckets = new Array<T | null>(length).fill(null);
    for (const head of before) {
      for (let entry = head; entry !== null; ) {
        const { chained } = entry;
        this.#add(entry);
        entry = chained;
      }
    }
  }
}

function lengthOf<T extends Identified<T>>(head: T | null): number {
  let length = 0;
  for (let entry = head; entry !== null; entry = entry.chained) length++;
  return length;
}

function hashOfEnding(id: string): number {
  let hash = id.length;
  for (let at = Math.max(0, id.length - ENDING); at < id.length; at++) {
    hash = (Math.imul(hash, 31) + id.charCodeAt(at)) | 0;
  }
  const mixed = Math.imul(hash, 0x9e3779b1);
  return mixed ^ (mixed >>> 16);
}
