/** The last keys that were put in: a bounded memory of requests that are over, and of whether their routers know. */
export class Remembered {
  readonly #most: number;
  readonly #keys = new Map<string, boolean>();

  constructor(most: number) {
    this.#most = most;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** Whether the router knows that a request is over. */
  isKnown(key: string): boolean {
    return this.#keys.get(key) === true;
  }

  add(key: string, isKnown: boolean): void {
    this.#keys.delete(key);
    this.#keys.set(key, isKnown);
    if (this.#keys.size <= this.#most) return;
    for (const oldest of this.#keys.keys()) {
      this.#keys.delete(oldest);
      return;
    }
  }

  /** Forgets the keys that `isGone` picks. */
  forget(isGone: (key: string) => boolean): void {
    for (const key of this.#keys.keys()) if (isGone(key)) this.#keys.delete(key);
  }
}
