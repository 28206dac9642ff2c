/** Puts what overtook in order again: what comes early is kept until everything that was sent before it has come. */
export class Sequencer<T> {
  readonly #maxEarly: number;
  readonly #early = new Map<number, T>();
  #next = 0;

  /** @param maxEarly how many items may wait */
  constructor(maxEarly: number) {
    this.#maxEarly = maxEarly;
  }

  /** Items that wait. */
  get early(): number {
    return this.#early.size;
  }

  /**
   * Takes an item, and hands on all that are next in line.
   *
   * @returns `taken`; `stale` if one with this number came before; `overrun` if too many would wait
   */
  put(sequence: number, item: T, deliver: (item: T) => void): "taken" | "stale" | "overrun" {
    if (sequence < this.#next || this.#early.has(sequence)) return "stale";
    if (sequence > this.#next) {
      if (this.#early.size >= this.#maxEarly) return "overrun";
      this.#early.set(sequence, item);
      return "taken";
    }
    this.#next++;
    deliver(item);
    while (this.#early.size > 0) {
      const following = this.#early.get(this.#next);
      if (following === undefined) break;
      this.#early.delete(this.#next++);
      deliver(following);
    }
    return "taken";
  }
}
