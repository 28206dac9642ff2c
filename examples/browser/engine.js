// One engine's KV cache under the traffic of conversations, on kvroute's BlockPool.

import { BlockPool } from "kvroute";

const SYSTEM_BLOCKS = 4;
const TURN_BLOCKS = 3;
const CONVERSATION_BLOCKS_MAX = 28;
/** A request is in the engine while so many others begin. */
const STAYS = 3;

/** A generator of numbers from 0 to 1, so that a page that is opened again shows the same. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export class Engine {
  #pool;
  #random = randomFrom(7);
  #conversations = [];
  #begun = 0;
  #inFlight = [];
  #owners = new Map(); // the conversation of each block
  counts = { requests: 0, blocks: 0, hits: 0, evicted: 0, refused: 0 };

  constructor(capacity) {
    this.#pool = new BlockPool({ capacity });
  }

  /** Begins a turn of one of so many conversations, and ends the request that has been there longest. */
  request(conversations) {
    if (this.#inFlight.length >= STAYS) this.#end();
    const place = Math.floor(this.#random() * conversations);
    const conversation = this.#turnOf(place);
    const prompt = this.#promptOf(conversation);
    const outcome = this.#pool.reserveResidentPrefix(prompt, prompt.length);
    this.counts.requests++;
    if (outcome === null) {
      this.counts.refused++;
      return { conversation: conversation.number, blocks: prompt.length, hits: 0, evicted: 0, isRefused: true };
    }
    const prefix = this.#pool.activatePrefix(outcome.reservation);
    const { ids } = this.#pool.allocateAllCached(outcome.reservation, prompt.subarray(prefix.length));
    for (const [at, id] of ids.entries()) {
      this.#owners.set(id, prefix.length + at < SYSTEM_BLOCKS ? 0 : conversation.number);
    }
    this.#inFlight.push(Float64Array.of(...prefix, ...ids));
    this.counts.blocks += prompt.length;
    this.counts.hits += prefix.length;
    this.counts.evicted += outcome.removed.length;
    const evicted = outcome.removed.length;
    return { conversation: conversation.number, blocks: prompt.length, hits: prefix.length, evicted, isRefused: false };
  }

  /** The blocks in use and those that are cached, the next victim last: the conversation of each, 0 for the shared ones. */
  picture() {
    const active = [...new Set(this.#inFlight.flatMap((ids) => Array.from(ids)))];
    const cached = Array.from(this.#pool.inactiveIds()).reverse();
    this.#owners = new Map([...active, ...cached].map((id) => [id, this.#owners.get(id)])); // without those evicted
    const ownerOf = (id) => this.#owners.get(id);
    const free = this.#pool.capacity - active.length - cached.length;
    return { active: active.map(ownerOf), cached: cached.map(ownerOf), free };
  }

  #turnOf(place) {
    const known = this.#conversations[place];
    if (known !== undefined && known.blocks + TURN_BLOCKS <= CONVERSATION_BLOCKS_MAX) known.blocks += TURN_BLOCKS;
    else this.#conversations[place] = { number: ++this.#begun, blocks: TURN_BLOCKS };
    return this.#conversations[place];
  }

  #promptOf({ number, blocks }) {
    return BigUint64Array.from({ length: SYSTEM_BLOCKS + blocks }, (_, at) =>
      at < SYSTEM_BLOCKS ? BigInt(at) : BigInt(number * 1_000 + at),
    );
  }

  #end() {
    this.#pool.releaseChain(this.#inFlight.shift());
  }
}
