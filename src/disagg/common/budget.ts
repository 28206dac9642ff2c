/** An amount that is lent out in parts, never more than there is. */
export class Budget {
  readonly #most: number;
  #lent = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get lent(): number {
    return this.#lent;
  }

  /** Lends an amount, or nothing. */
  take(amount: number): boolean {
    if (this.#lent + amount > this.#most) return false;
    this.#lent += amount;
    return true;
  }

  give(amount: number): void {
    this.#lent -= amount;
  }
}
