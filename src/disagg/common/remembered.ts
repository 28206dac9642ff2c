/** The last keys that were put in: a bounded memory of requests that are over, for what still comes of them. */
export class Remembered {
  readonly #most: number;
  readonly #keys = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  add(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    if (this.#keys.size <= this.#most) return;
    for (const oldest of this.#keys) {
      this.#keys.delete(oldest);
      return;
    }
  }

  /** Forgets the keys that `isGone` picks. */
  forget(isGone: (key: string) => boolean): void {
    for (const key of this.#keys) if (isGone(key)) this.#keys.delete(key);
  }
}
