import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Index } from "./contract.js";

// The structure of the core in typed arrays, as fast as JavaScript gets it: nodes and entries are numbers, their fields
// stand in parallel arrays, those that are used together in one. Buckets are lists through their members, with four heads
// a record, as in the baseline of the block pool, where that was measured to be the fastest. It does less than the core:
// no order of use of each worker, no lists to clear a worker by, no ranks, no checks, and it does not grow.
//
//   #nodes     lo, hi of the hash; lo, hi of the signature; first entry; entries
//   #entries   worker, node; previous, following of the node; older, newer in the order of use
const NODE = 6;
const SIGNATURE = 2;
const FIRST = 4;
const COUNT = 5;
const ENTRY = 6;
const OWNER_NODE = 1;
const PREVIOUS = 2;
const FOLLOWING = 3;
const OLDER = 4;
const NEWER = 5;

function bucketOf(lo: number, hi: number, shift: number): number {
  return Math.imul(lo ^ Math.imul(hi, 0x85ebca6b), 0x9e3779b1) >>> shift;
}

/** The prefix index in typed arrays. */
export class TypedArrayIndex implements Index {
  readonly #maxEntries: number;
  readonly #nodes: Int32Array;
  readonly #entries: Int32Array;
  readonly #nodeHeads: Int32Array;
  readonly #entryHeads: Int32Array;
  /** The next node of a bucket, or the next free node. */
  readonly #nextNode: Int32Array;
  readonly #nextEntry: Int32Array;
  readonly #shift: number;
  #freeNode = 1;
  #freeEntry = 1;
  #blocks = 0;
  #count = 0;
  readonly #workers: WorkerWithDpRank[] = [];
  readonly #numbers = new Map<string | number | bigint, number>();
  /** A random word of each worker, two halves: its share in signatures. */
  readonly #words: number[] = [];
  #marks = new Int32Array(16);
  #mark = 0;
  #input = new BigUint64Array(64);
  #inputWords = new Int32Array(this.#input.buffer);

  constructor({ maxEntries }: { maxEntries: number }) {
    const bits = Math.ceil(Math.log2(maxEntries * 4));
    this.#maxEntries = maxEntries;
    this.#shift = 32 - bits;
    this.#nodes = new Int32Array((maxEntries + 1) * NODE);
    this.#entries = new Int32Array((maxEntries + 1) * ENTRY);
    this.#nodeHeads = new Int32Array(2 ** bits);
    this.#entryHeads = new Int32Array(2 ** bits);
    this.#nextNode = Int32Array.from({ length: maxEntries + 1 }, (_, i) => i + 1);
    this.#nextEntry = Int32Array.from({ length: maxEntries + 1 }, (_, i) => i + 1);
  }

  get size(): { blocks: number; entries: number } {
    return { blocks: this.#blocks, entries: this.#count };
  }

  store(worker: WorkerWithDpRank, hashes: BigUint64Array): void {
    const number = this.#numberOf(worker);
    const words = this.#load(hashes);
    let anchor = 0;
    for (let i = 0; i < hashes.length << 1; i += 2) {
      const lo = words[i] as number;
      const hi = words[i + 1] as number;
      const node = this.#findNode(lo, hi);
      let entry = node === 0 ? 0 : this.#findEntry(node, number);
      if (entry === 0) {
        if (this.#count === this.#maxEntries) {
          const victim = this.#entries[NEWER] as number;
          if (victim === anchor) return;
          this.#drop(victim);
        }
        entry = this.#create(lo, hi, number);
        this.#link(entry, anchor);
      } else if (entry !== anchor) {
        this.#unlink(entry);
        this.#link(entry, anchor);
      }
      anchor = entry;
    }
  }

  remove(worker: WorkerWithDpRank, hashes: BigUint64Array): void {
    const number = this.#numberOf(worker);
    const words = this.#load(hashes);
    for (let i = 0; i < hashes.length << 1; i += 2) {
      const node = this.#findNode(words[i] as number, words[i + 1] as number);
      const entry = node === 0 ? 0 : this.#findEntry(node, number);
      if (entry !== 0) this.#drop(entry);
    }
  }

  overlap(hashes: BigUint64Array): { worker: WorkerWithDpRank; blocks: number }[] {
    const words = this.#load(hashes);
    const nodes = this.#nodes;
    const root = this.#findNode(words[0] as number, words[1] as number);
    if (root === 0) return [];
    const ends = [0];
    const numbers = this.#members(root);
    let before = root * NODE;
    let mark = this.#nextMark();
    const base = mark;
    const marks = this.#marks;
    for (const number of numbers) marks[number] = mark;
    let level = 1;
    for (; level < hashes.length; level++) {
      const found = this.#findNode(words[level << 1] as number, words[(level << 1) + 1] as number);
      if (found === 0) break;
      const node = found * NODE;
      if (
        nodes[node + COUNT] === nodes[before + COUNT] &&
        nodes[node + SIGNATURE] === nodes[before + SIGNATURE] &&
        nodes[node + SIGNATURE + 1] === nodes[before + SIGNATURE + 1]
      )
        continue;
      const stay = this.#sift(found, mark);
      if (stay === 0) break;
      ends[mark - base] = level;
      mark = this.#mark;
      before = node;
    }
    ends[mark - base] = level;
    numbers.sort((a, b) => (marks[b] as number) - (marks[a] as number) || a - b);
    return numbers.map((number) => ({
      worker: this.#workers[number] as WorkerWithDpRank,
      blocks: ends[(marks[number] as number) - base] as number,
    }));
  }

  #members(node: number): number[] {
    const entries = this.#entries;
    const numbers = new Array<number>(this.#nodes[node * NODE + COUNT] as number);
    let entry = this.#nodes[node * NODE + FIRST] as number;
    for (let i = 0; i < numbers.length; i++) {
      numbers[i] = entries[entry * ENTRY] as number;
      entry = entries[entry * ENTRY + FOLLOWING] as number;
    }
    return numbers;
  }

  #sift(node: number, from: number): number {
    const entries = this.#entries;
    const marks = this.#marks;
    const to = from + 1;
    let stay = 0;
    for (let entry = this.#nodes[node * NODE + FIRST] as number; entry !== 0; ) {
      const number = entries[entry * ENTRY] as number;
      if (marks[number] === from) {
        marks[number] = to;
        stay++;
      }
      entry = entries[entry * ENTRY + FOLLOWING] as number;
    }
    if (stay > 0) this.#mark = to;
    return stay;
  }

  #nextMark(): number {
    if (this.#mark > 2 ** 30) {
      this.#marks.fill(0);
      this.#mark = 0;
    }
    return ++this.#mark;
  }

  #load(hashes: BigUint64Array): Int32Array {
    if (hashes.length > this.#input.length) {
      this.#input = new BigUint64Array(hashes.length * 2);
      this.#inputWords = new Int32Array(this.#input.buffer);
    }
    this.#input.set(hashes);
    return this.#inputWords;
  }

  #findNode(lo: number, hi: number): number {
    const nodes = this.#nodes;
    let node = this.#nodeHeads[bucketOf(lo, hi, this.#shift)] as number;
    while (node !== 0 && (nodes[node * NODE] !== lo || nodes[node * NODE + 1] !== hi)) {
      node = this.#nextNode[node] as number;
    }
    return node;
  }

  #findEntry(node: number, number: number): number {
    const entries = this.#entries;
    let entry = this.#entryHeads[bucketOf(node, number, this.#shift)] as number;
    while (entry !== 0 && (entries[entry * ENTRY] !== number || entries[entry * ENTRY + OWNER_NODE] !== node)) {
      entry = this.#nextEntry[entry] as number;
    }
    return entry;
  }

  #create(lo: number, hi: number, number: number): number {
    const nodes = this.#nodes;
    const entries = this.#entries;
    let node = this.#findNode(lo, hi);
    if (node === 0) node = this.#createNode(lo, hi);
    const at = node * NODE;
    const entry = this.#freeEntry;
    this.#freeEntry = this.#nextEntry[entry] as number;
    const bucket = bucketOf(node, number, this.#shift);
    this.#nextEntry[entry] = this.#entryHeads[bucket] as number;
    this.#entryHeads[bucket] = entry;
    const first = nodes[at + FIRST] as number;
    entries[entry * ENTRY] = number;
    entries[entry * ENTRY + OWNER_NODE] = node;
    entries[entry * ENTRY + PREVIOUS] = 0;
    entries[entry * ENTRY + FOLLOWING] = first;
    if (first !== 0) entries[first * ENTRY + PREVIOUS] = entry;
    nodes[at + FIRST] = entry;
    (nodes[at + COUNT] as number)++;
    (nodes[at + SIGNATURE] as number) ^= this.#words[number << 1] as number;
    (nodes[at + SIGNATURE + 1] as number) ^= this.#words[(number << 1) + 1] as number;
    this.#count++;
    return entry;
  }

  #createNode(lo: number, hi: number): number {
    const node = this.#freeNode;
    this.#freeNode = this.#nextNode[node] as number;
    const bucket = bucketOf(lo, hi, this.#shift);
    this.#nextNode[node] = this.#nodeHeads[bucket] as number;
    this.#nodeHeads[bucket] = node;
    this.#nodes[node * NODE] = lo;
    this.#nodes[node * NODE + 1] = hi;
    this.#blocks++;
    return node;
  }

  #drop(entry: number): void {
    const nodes = this.#nodes;
    const entries = this.#entries;
    const number = entries[entry * ENTRY] as number;
    const node = entries[entry * ENTRY + OWNER_NODE] as number;
    const previous = entries[entry * ENTRY + PREVIOUS] as number;
    const following = entries[entry * ENTRY + FOLLOWING] as number;
    const at = node * NODE;
    this.#unlink(entry);
    if (previous === 0) nodes[at + FIRST] = following;
    else entries[previous * ENTRY + FOLLOWING] = following;
    if (following !== 0) entries[following * ENTRY + PREVIOUS] = previous;
    (nodes[at + COUNT] as number)--;
    (nodes[at + SIGNATURE] as number) ^= this.#words[number << 1] as number;
    (nodes[at + SIGNATURE + 1] as number) ^= this.#words[(number << 1) + 1] as number;
    takeOut(this.#entryHeads, this.#nextEntry, bucketOf(node, number, this.#shift), entry);
    this.#nextEntry[entry] = this.#freeEntry;
    this.#freeEntry = entry;
    this.#count--;
    if ((nodes[at + COUNT] as number) > 0) return;
    takeOut(this.#nodeHeads, this.#nextNode, bucketOf(nodes[at] as number, nodes[at + 1] as number, this.#shift), node);
    this.#nextNode[node] = this.#freeNode;
    this.#freeNode = node;
    this.#blocks--;
  }

  #link(entry: number, anchor: number): void {
    const entries = this.#entries;
    const older = entries[anchor * ENTRY + OLDER] as number;
    entries[entry * ENTRY + OLDER] = older;
    entries[entry * ENTRY + NEWER] = anchor;
    entries[older * ENTRY + NEWER] = entry;
    entries[anchor * ENTRY + OLDER] = entry;
  }

  #unlink(entry: number): void {
    const entries = this.#entries;
    const older = entries[entry * ENTRY + OLDER] as number;
    const newer = entries[entry * ENTRY + NEWER] as number;
    entries[older * ENTRY + NEWER] = newer;
    entries[newer * ENTRY + OLDER] = older;
  }

  #numberOf(worker: WorkerWithDpRank): number {
    let number = this.#numbers.get(worker.workerId);
    if (number !== undefined) return number;
    number = this.#workers.push(worker) - 1;
    this.#numbers.set(worker.workerId, number);
    this.#words.push(
      Math.imul(number + 1, 0x9e3779b1) ^ (number << 7),
      Math.imul(number + 1, 0x85ebca6b) ^ (number << 9),
    );
    if (number >= this.#marks.length) {
      const marks = new Int32Array(number * 2);
      marks.set(this.#marks);
      this.#marks = marks;
    }
    return number;
  }
}

function takeOut(heads: Int32Array, next: Int32Array, bucket: number, member: number): void {
  let standing = heads[bucket] as number;
  if (standing === member) {
    heads[bucket] = next[member] as number;
    return;
  }
  while (next[standing] !== member) standing = next[standing] as number;
  next[standing] = next[member] as number;
}
