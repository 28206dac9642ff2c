/** Keeps the last of what it is given. */
export class Recent<T> {
  readonly #max: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(item: T): void {
    if (this.#max === 0) return;
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#max;
  }

  /** Lists them, oldest first. */
  list(): T[] {
    const isFull = this.#items.length === this.#max;
    return isFull ? [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)] : [...this.#items];
  }
}
