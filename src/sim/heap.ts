/** A binary heap: gives back what was put in, the earliest by `isBefore` first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (left: T, right: T) => boolean;

  /** @param isBefore a total order: with ties, what comes first would depend on the history of the heap */
  constructor(isBefore: (left: T, right: T) => boolean) {
    this.#isBefore = isBefore;
  }

  /** The item that `pop` would give, `undefined` if there is none. */
  get first(): T | undefined {
    return this.#items[0];
  }

  get size(): number {
    return this.#items.length;
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const up = (at - 1) >>> 1;
      const parent = items[up] as T; // up < at < length
      if (!this.#isBefore(item, parent)) break;
      items[at] = parent;
      at = up;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (items.length > 0) this.#sink(last as T); // there was a last item, since one is left
    return first;
  }

  /** Puts an item in the place of the first, and lets it sink below all that come before it. */
  #sink(item: T): void {
    const items = this.#items;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= items.length) break;
      const right = left + 1;
      const isRight = right < items.length && this.#isBefore(items[right] as T, items[left] as T);
      const down = isRight ? right : left;
      const child = items[down] as T;
      if (!this.#isBefore(child, item)) break;
      items[at] = child;
      at = down;
    }
    items[at] = item;
  }
}
