import type { Hashes, WorkerId, WorkerWithDpRank } from "../../src/core/keys.js";

/** The public methods of PrefixIndex, so that the real one, the naive one and deliberately wrong ones run the same suites. */
export interface IndexUnderTest {
  readonly size: { readonly blocks: number; readonly entries: number };
  readonly stats: { readonly evicted: number; readonly expired: number };
  store(worker: WorkerWithDpRank, hashes: Hashes, options?: { parent?: bigint; nowMs?: number }): void;
  remove(worker: WorkerWithDpRank, hashes: Hashes): void;
  limit(worker: WorkerWithDpRank, maxEntries: number): void;
  clear(worker: WorkerWithDpRank): void;
  removeWorker(workerId: WorkerId): void;
  overlap(hashes: Hashes, nowMs?: number): { worker: WorkerWithDpRank; blocks: number }[];
}

export interface IndexOptions {
  readonly maxEntries?: number;
  readonly maxEntriesPerWorker?: number;
  readonly ttlMs?: number;
}

interface Holder {
  readonly worker: WorkerWithDpRank;
  /** When it last used a block whose parent it did not have. */
  orphaned: number;
  /** How many entries it may keep. */
  limit: number;
}

interface Entry {
  readonly holder: Holder;
  readonly hash: bigint;
  stamp: number;
}

/** The reference of the model tests: one list of entries in order of use, searched from end to end. */
export class NaiveIndex implements IndexUnderTest {
  readonly stats = { evicted: 0, expired: 0 };
  /** Oldest use first. */
  #entries: Entry[] = [];
  #holders: Holder[] = [];
  /** The parents of the blocks that somebody holds. */
  readonly #parents = new Map<bigint, bigint | undefined>();
  readonly #most: number;
  readonly #mostOwn: number;
  readonly #ttlMs: number | undefined;
  #clock = 0;

  constructor(options: IndexOptions = {}) {
    this.#most = options.maxEntries ?? 1_000_000;
    this.#mostOwn = Math.min(this.#most, options.maxEntriesPerWorker ?? this.#most);
    this.#ttlMs = options.ttlMs;
  }

  get size(): { blocks: number; entries: number } {
    return { blocks: this.#parents.size, entries: this.#entries.length };
  }

  store(worker: WorkerWithDpRank, hashes: Hashes, options: { parent?: bigint; nowMs?: number } = {}): void {
    if (hashes.length === 0) return;
    this.#pass(options.nowMs);
    const holder = this.#find(worker) ?? this.#register(worker);
    const stamp = this.#useAncestors(holder, options.parent);
    let anchor = this.#entryOf(holder, options.parent);
    let parent = options.parent;
    for (const hash of hashes) {
      let entry = this.#entryOf(holder, hash);
      if (entry === undefined) {
        if (!this.#makeRoom(holder, anchor)) return;
        entry = { holder, hash, stamp };
        this.#place(entry, anchor, stamp);
      } else if (entry !== anchor) {
        this.#place(entry, anchor, stamp);
      }
      this.#parents.set(hash, parent === hash ? undefined : parent);
      anchor = entry;
      parent = hash;
    }
  }

  remove(worker: WorkerWithDpRank, hashes: Hashes): void {
    const holder = this.#find(worker);
    this.#keep((entry) => entry.holder !== holder || !hashes.includes(entry.hash as never));
  }

  limit(worker: WorkerWithDpRank, maxEntries: number): void {
    const holder = this.#find(worker) ?? this.#register(worker);
    holder.limit = maxEntries;
    for (;;) {
      const own = this.#entries.filter((entry) => entry.holder === holder);
      if (own.length <= maxEntries) return;
      this.#evict(own[0] as Entry);
    }
  }

  clear(worker: WorkerWithDpRank): void {
    const holder = this.#find(worker);
    this.#keep((entry) => entry.holder !== holder);
  }

  removeWorker(workerId: WorkerId): void {
    this.#keep((entry) => !sameId(entry.holder.worker.workerId, workerId));
    this.#holders = this.#holders.filter(({ worker }) => !sameId(worker.workerId, workerId));
  }

  overlap(hashes: Hashes, nowMs?: number): { worker: WorkerWithDpRank; blocks: number }[] {
    if (hashes.length > 0) this.#pass(nowMs);
    return this.#holders
      .map((holder) => {
        let blocks = 0;
        while (blocks < hashes.length && this.#entryOf(holder, hashes[blocks]) !== undefined) blocks++;
        return { worker: holder.worker, blocks };
      })
      .filter(({ blocks }) => blocks > 0)
      .sort((a, b) => b.blocks - a.blocks);
  }

  /** Tells whether a worker holds a block whose parent was said to be this one. */
  holdsChild(worker: WorkerWithDpRank, hash: bigint): boolean {
    const holder = this.#find(worker);
    return this.#entries.some((entry) => entry.holder === holder && this.#parents.get(entry.hash) === hash);
  }

  /** Called before an entry is evicted. */
  onEvict: (worker: WorkerWithDpRank, hash: bigint) => void = () => {};

  /** Uses the ancestors from `parent` up to the first that was used a short time ago. Returns the stamp of the store. */
  #useAncestors(holder: Holder, parent: bigint | undefined): number {
    if (parent === undefined) return this.#clock;
    const stale: Entry[] = [];
    let above: bigint | undefined = parent;
    let entry = this.#entryOf(holder, above);
    while (entry !== undefined && !stale.includes(entry) && !this.#isRecent(entry)) {
      stale.push(entry);
      above = this.#parents.get(entry.hash);
      entry = this.#entryOf(holder, above);
    }
    const recent = entry === undefined || stale.includes(entry) ? undefined : entry;
    if (recent === undefined && above !== undefined) holder.orphaned = this.#clock;
    const stamp = recent?.stamp ?? this.#clock;
    for (const ancestor of stale) this.#place(ancestor, recent, stamp);
    return stamp;
  }

  #isRecent(entry: Entry): boolean {
    const lag = this.#ttlMs === undefined ? Math.floor(entry.holder.limit / 8) : 0;
    return this.#clock - entry.stamp <= lag && entry.stamp > entry.holder.orphaned;
  }

  #place(entry: Entry, anchor: Entry | undefined, stamp: number): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
    const place = anchor === undefined ? this.#entries.length : this.#entries.indexOf(anchor);
    this.#entries.splice(place, 0, entry);
    entry.stamp = stamp;
    if (this.#ttlMs === undefined) this.#clock++;
  }

  #makeRoom(holder: Holder, anchor: Entry | undefined): boolean {
    const own = this.#entries.filter((entry) => entry.holder === holder);
    if (own.length < holder.limit && this.#entries.length < this.#most) return true;
    const victim = (own.length < holder.limit ? this.#entries : own)[0] as Entry;
    if (victim === anchor) return false;
    this.#evict(victim);
    return true;
  }

  #evict(victim: Entry): void {
    this.onEvict(victim.holder.worker, victim.hash);
    this.#keep((entry) => entry !== victim);
    this.stats.evicted++;
  }

  #pass(nowMs: number | undefined): void {
    const ttlMs = this.#ttlMs;
    if (ttlMs === undefined) return;
    this.#clock = Math.max(this.#clock, nowMs as number);
    const before = this.#entries.length;
    this.#keep((entry) => this.#clock - entry.stamp <= ttlMs);
    this.stats.expired += before - this.#entries.length;
  }

  #keep(stays: (entry: Entry) => boolean): void {
    this.#entries = this.#entries.filter(stays);
    const held = new Set(this.#entries.map((entry) => entry.hash));
    for (const hash of this.#parents.keys()) if (!held.has(hash)) this.#parents.delete(hash);
  }

  #entryOf(holder: Holder, hash: bigint | undefined): Entry | undefined {
    return this.#entries.find((entry) => entry.holder === holder && entry.hash === hash);
  }

  #find({ workerId, dpRank }: WorkerWithDpRank): Holder | undefined {
    return this.#holders.find(({ worker }) => sameId(worker.workerId, workerId) && worker.dpRank === dpRank);
  }

  #register({ workerId, dpRank }: WorkerWithDpRank): Holder {
    const holder = { worker: { workerId, dpRank }, orphaned: -1, limit: this.#mostOwn };
    this.#holders.push(holder);
    return holder;
  }
}

// 1 and 1n are one worker, "1" is another.
function sameId(a: WorkerId, b: WorkerId): boolean {
  return typeof a === "string" || typeof b === "string" ? a === b : BigInt(a) === BigInt(b);
}
