import { type EngineHash, type EngineKey, type KvStored, keyOf, weighEvent } from "./event.js";

/** A chain whose parent is not known yet. */
export interface Waiting {
  readonly event: KvStored;
  /** Blocks of the chain that were removed while it waited. */
  readonly gone: Set<EngineKey>;
  readonly bytes: number;
}

const CHAIN_BYTES = 512;
const BLOCK_BYTES = 256;

/** Bytes that a chain takes in the room, roughly: its event, its own record, and a place among the blocks for each block. */
export function weighWaiting(event: KvStored): number {
  return weighEvent(event) + CHAIN_BYTES + event.blockHashes.length * BLOCK_BYTES;
}

/** Keeps chains until their parents arrive, up to so many bytes: when it is full, the one that waits longest goes. */
export class WaitingRoom {
  readonly #maxBytes: number;
  /** In order of arrival. */
  readonly #guests = new Set<Waiting>();
  readonly #byParent = new Map<EngineKey, Set<Waiting>>();
  readonly #byBlock = new Map<EngineKey, Set<Waiting>>();
  #bytes = 0;
  #blocks = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts the blocks that wait, removed ones included. */
  get blocks(): number {
    return this.#blocks;
  }

  /** Lets a chain wait, and gives the number of blocks that had to go, its own where it does not fit alone. */
  add(event: KvStored, parent: EngineHash): number {
    const guest: Waiting = { event, gone: new Set(), bytes: weighWaiting(event) };
    const before = this.#blocks;
    this.#guests.add(guest);
    link(this.#byParent, keyOf(parent), guest);
    for (const hash of event.blockHashes) link(this.#byBlock, keyOf(hash), guest);
    this.#bytes += guest.bytes;
    this.#blocks += event.blockHashes.length;
    for (const oldest of this.#guests) {
      if (this.#bytes <= this.#maxBytes) break;
      this.leave(oldest);
    }
    return before + event.blockHashes.length - this.#blocks;
  }

  /** Gives the chains that wait for a block, in order of arrival. Each is to `leave` once it is in its place. */
  of(parent: EngineKey): ReadonlySet<Waiting> {
    return this.#byParent.get(parent) ?? NOBODY;
  }

  /** Lets a chain go that is there. */
  leave(guest: Waiting): void {
    const { blockHashes, parentBlockHash } = guest.event;
    this.#guests.delete(guest);
    if (parentBlockHash !== null) unlink(this.#byParent, keyOf(parentBlockHash), guest);
    for (const hash of blockHashes) unlink(this.#byBlock, keyOf(hash), guest);
    this.#bytes -= guest.bytes;
    this.#blocks -= blockHashes.length;
  }

  /** Takes a block out of all chains that wait, and tells whether there was one. */
  remove(hash: EngineHash): boolean {
    const key = keyOf(hash);
    const guests = [...(this.#byBlock.get(key) ?? [])];
    for (const guest of guests) {
      guest.gone.add(key);
      unlink(this.#byBlock, key, guest);
      if (guest.gone.size === guest.event.blockHashes.length) this.leave(guest);
    }
    return guests.length > 0;
  }

  clear(): void {
    this.#guests.clear();
    this.#byParent.clear();
    this.#byBlock.clear();
    this.#bytes = 0;
    this.#blocks = 0;
  }
}

const NOBODY: ReadonlySet<Waiting> = new Set();

function link(map: Map<EngineKey, Set<Waiting>>, key: EngineKey, guest: Waiting): void {
  const guests = map.get(key);
  if (guests === undefined) map.set(key, new Set([guest]));
  else guests.add(guest);
}

function unlink(map: Map<EngineKey, Set<Waiting>>, key: EngineKey, guest: Waiting): void {
  const guests = map.get(key);
  if (guests?.delete(guest) && guests.size === 0) map.delete(key);
}
