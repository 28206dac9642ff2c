/** What an order keeps. The fields after the first two are its own; they start as null, null and `NOT_LATE`. */
export interface Aged<T> {
  readonly insertedAtMs: number;
  readonly generation: number;
  /** The neighbours in the list. */
  older: T | null;
  newer: T | null;
  /** Where the entry stands in the heap, `NOT_LATE` for one of the list. */
  lateIndex: number;
}

export const NOT_LATE = -1;

/**
 * Keeps entries by anchor, and by generation among equal anchors.
 *
 *     list   oldest ⇄ … ⇄ newest    came in order of time: appended, in O(1)
 *     heap   late[0] first          came with an anchor before the newest: O(log n)
 *
 * The oldest of all is the head of the list or the top of the heap. Late entries do not walk to their place in the list,
 * for a client that chooses anchors could make every walk as long as the list. Both hold live entries only.
 */
export class AgeOrder<T extends Aged<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;
  #listed = 0;
  readonly #late: T[] = [];

  get size(): number {
    return this.#listed + this.#late.length;
  }

  /** The entry that goes first, `null` if there is none. */
  get oldest(): T | null {
    const late = this.#late[0];
    if (late === undefined) return this.#oldest;
    return this.#oldest === null || isBefore(late, this.#oldest) ? late : this.#oldest;
  }

  /** Adds an entry whose generation is above all that were added before. */
  add(entry: T): void {
    if (this.#newest === null || entry.insertedAtMs >= this.#newest.insertedAtMs) this.#append(entry);
    else this.#rise(entry, this.#late.length);
  }

  /** Removes an entry that is there. */
  delete(entry: T): void {
    if (entry.lateIndex === NOT_LATE) this.#unlink(entry);
    else this.#takeOut(entry);
  }

  /** Lists all, late ones last. Nothing may be added or deleted meanwhile. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let entry = this.#oldest; entry !== null; entry = entry.newer) yield entry;
    yield* this.#late;
  }

  /** Lists what both structures hold, each as it stands, for tests that look inside. */
  inspect(): { listed: T[]; late: readonly T[] } {
    const listed: T[] = [];
    for (let entry = this.#oldest; entry !== null; entry = entry.newer) listed.push(entry);
    return { listed, late: [...this.#late] };
  }

  #append(entry: T): void {
    const last = this.#newest;
    entry.older = last;
    if (last === null) this.#oldest = entry;
    else last.newer = entry;
    this.#newest = entry;
    this.#listed++;
  }

  // What has gone must not point to what is newer: garbage in V8's old space would keep all of it alive.
  #unlink(entry: T): void {
    const { older, newer } = entry;
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    entry.newer = null;
    this.#listed--;
  }

  // The last of the heap takes the place of the one that goes.
  #takeOut(entry: T): void {
    const last = this.#late.pop() as T; // there is a last one, since the entry is in the heap
    if (last === entry) return;
    if (isBefore(last, entry)) this.#rise(last, entry.lateIndex);
    else this.#sink(last, entry.lateIndex);
  }

  /** Puts an entry into a free place, or above it, once what must come after it has moved down. */
  #rise(entry: T, free: number): void {
    const late = this.#late;
    let place = free;
    while (place > 0) {
      const up = (place - 1) >>> 1;
      const parent = late[up] as T; // up < place
      if (!isBefore(entry, parent)) break;
      late[place] = parent;
      parent.lateIndex = place;
      place = up;
    }
    late[place] = entry;
    entry.lateIndex = place;
  }

  /** Puts an entry into a free place, or below it, once what must come before it has moved up. */
  #sink(entry: T, free: number): void {
    const late = this.#late;
    let place = free;
    for (let down = firstBelow(late, place); down < late.length; down = firstBelow(late, place)) {
      const child = late[down] as T;
      if (!isBefore(child, entry)) break;
      late[place] = child;
      child.lateIndex = place;
      place = down;
    }
    late[place] = entry;
    entry.lateIndex = place;
  }
}

/** The place of the older of the two below, beyond the heap if there is none. */
function firstBelow<T extends Aged<T>>(late: readonly T[], place: number): number {
  const left = 2 * place + 1;
  const right = left + 1;
  return right < late.length && isBefore(late[right] as T, late[left] as T) ? right : left;
}

function isBefore<T extends Aged<T>>(left: T, right: T): boolean {
  if (left.insertedAtMs !== right.insertedAtMs) return left.insertedAtMs < right.insertedAtMs;
  return left.generation < right.generation;
}
