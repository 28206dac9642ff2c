import { keyOf } from "../../src/selection/events/event.js";
import type { EngineHash, KvEvent } from "../../src/selection/events.js";

/** A prompt in blocks of `BLOCK` tokens. */
export interface Prompt {
  readonly tokens: readonly number[];
  readonly loraName?: string;
  readonly cacheSalt?: string;
  /** The block that an image touches. */
  readonly image?: { readonly block: number; readonly name: string };
}

export const BLOCK = 2;

/** A message as it leaves the engine. */
export interface Published {
  readonly seq: number;
  readonly ts: number;
  readonly events: readonly KvEvent[];
}

/** How an engine writes its hashes; the same one now signed and now unsigned, if need be. */
export type HashForm = "unsigned" | "signed" | "mixed" | "bytes";

/** Whether an engine announces chains whole, or in pairs of blocks with the last one first, over several messages. */
export type Order = "in order" | "backwards";

/** An engine that caches the blocks of prompts, says so, and keeps what it said for replays. */
export class FakeEngine {
  readonly #form: HashForm;
  readonly #order: Order;
  readonly #keep: number;
  /** Identity of a block, from the prompt's start on -> number in order of first appearance. */
  readonly #names = new Map<string, number>();
  #held = new Set<string>();
  #pending: KvEvent[] = [];
  #sent: Published[] = [];
  #seq = 0;
  #isSigned = false;
  #ts = 1_000;

  /** @param keep messages that are kept for replays */
  constructor(form: HashForm, order: Order, keep = Number.POSITIVE_INFINITY) {
    this.#form = form;
    this.#order = order;
    this.#keep = keep;
  }

  /** Computes a prompt: everything behind its cached prefix is stored, also what lies there already. */
  admit(prompt: Prompt): void {
    const path = identities(prompt);
    const first = path.findIndex((identity) => !this.#held.has(identity));
    if (first < 0) return;
    for (const identity of path) this.#held.add(identity);
    if (this.#order === "in order") this.#announce(prompt, path, first, path.length);
    else {
      for (let end = path.length; end > first; end -= 2) this.#announce(prompt, path, Math.max(first, end - 2), end);
    }
  }

  /** Says that the blocks of a prompt from `first` to before `end` are stored. */
  #announce(prompt: Prompt, path: readonly string[], first: number, end: number): void {
    const { tokens, loraName = null, cacheSalt = null, image } = prompt;
    const textBlocks = Math.max(0, Math.min(end, image?.block ?? end) - first);
    this.#pending.push({
      ...{
        type: "stored",
        loraName,
        textBlocks,
        loraId: null,
        medium: "GPU",
        groupIdx: null,
        specKind: null,
        slidingWindow: null,
      },
      blockHashes: path.slice(first, end).map((identity) => this.#hashOf(identity)),
      parentBlockHash: first === 0 ? null : this.#hashOf(path[first - 1] as string),
      tokenIds: Uint32Array.from(tokens.slice(first * BLOCK, end * BLOCK)),
      blockSize: BLOCK,
      cacheSalt: first === 0 ? cacheSalt : null, // sent with the first block only
    });
  }

  /** Evicts up to `count` blocks, from the `from`-th held one on, whether others stand behind them or not. */
  evict(from: number, count: number): void {
    const held = [...this.#held];
    const victims = Array.from(
      { length: Math.min(count, held.length) },
      (_, i) => held[(from + i) % held.length] as string,
    );
    if (victims.length === 0) return;
    for (const identity of victims) this.#held.delete(identity);
    const blockHashes = [...new Set(victims)].map((identity) => this.#hashOf(identity));
    const names = new Set(blockHashes.map(keyOf));
    const announces = (event: KvEvent) =>
      event.type === "stored" && event.blockHashes.some((hash) => names.has(keyOf(hash)));
    const stored = this.#pending.map(announces).lastIndexOf(true);
    // Backwards, so that it comes between a block and its parent: as soon as nothing announces the victims any more.
    const at = this.#order === "in order" ? this.#pending.length : stored + 1;
    this.#pending.splice(at, 0, { type: "removed", blockHashes, medium: "GPU", groupIdx: null });
  }

  /** Says that a block is removed that is not held. */
  removeUnheld(prompt: Prompt): void {
    const unheld = identities(prompt).filter((identity) => !this.#held.has(identity));
    if (unheld.length === 0) return;
    const blockHashes = unheld.map((identity) => this.#hashOf(identity));
    this.#pending.push({ type: "removed", blockHashes, medium: "GPU", groupIdx: null });
  }

  clear(): void {
    this.#held = new Set();
    this.#pending.push({ type: "cleared" });
  }

  /** Starts anew: nothing is held, numbers begin at 0, nothing is kept for replays. */
  restart(): void {
    this.#held = new Set();
    this.#pending = [];
    this.#sent = [];
    this.#seq = 0;
  }

  /** Sends what is pending as one message; an engine that announces backwards sends half of it, unless it is to send all. */
  publish(all = false): Published {
    const { length } = this.#pending;
    const events = this.#pending.splice(0, all || this.#order === "in order" ? length : Math.ceil(length / 2));
    const message = { seq: this.#seq++, ts: this.#ts++, events };
    this.#sent.push(message);
    return message;
  }

  /** What a replay brings. */
  replay(from: number): readonly Published[] {
    const kept = this.#keep === Number.POSITIVE_INFINITY ? this.#sent : this.#sent.slice(-this.#keep);
    return kept.filter((message) => message.seq >= from);
  }

  /** Everything that was sent since the last start, in order. */
  get history(): readonly Published[] {
    return this.#sent;
  }

  /** Counts the leading blocks of a prompt of text that are held. */
  cachedBlocks(prompt: Prompt): number {
    const path = identities(prompt);
    const miss = path.findIndex((identity) => !this.#held.has(identity));
    return miss < 0 ? path.length : miss;
  }

  #hashOf(identity: string): EngineHash {
    const number = this.#names.get(identity) ?? this.#names.size;
    this.#names.set(identity, number);
    const bits = BigInt.asUintN(64, BigInt(number + 1) * 0x9e3779b97f4a7c15n);
    if (this.#form === "bytes") return `0x${bits.toString(16).padStart(64, "0")}`;
    if (this.#form === "mixed") this.#isSigned = !this.#isSigned;
    return this.#form === "signed" || this.#isSigned ? BigInt.asIntN(64, bits) : bits;
  }
}

/** Names each block by everything that decides on its content. */
function identities({ tokens, loraName, cacheSalt, image }: Prompt): string[] {
  return Array.from({ length: Math.floor(tokens.length / BLOCK) }, (_, block) => {
    const seen = image !== undefined && image.block <= block ? image : null;
    return JSON.stringify([tokens.slice(0, (block + 1) * BLOCK), loraName ?? null, cacheSalt ?? null, seen]);
  });
}
