import type { Sequence } from "./sequence.js";

/** The sequences that wait: those that were preempted before all others, the last one first. */
export class WaitingLine {
  readonly #preempted: Sequence[] = [];
  readonly #fresh = new Set<Sequence>();

  get size(): number {
    return this.#preempted.length + this.#fresh.size;
  }

  /** The one whose turn it is. */
  get head(): Sequence | undefined {
    return this.#preempted.at(-1) ?? this.#fresh.values().next().value;
  }

  /** Puts a sequence at the end. */
  enqueue(sequence: Sequence): void {
    this.#fresh.add(sequence);
  }

  /** Puts a sequence to the front. */
  putFirst(sequence: Sequence): void {
    this.#preempted.push(sequence);
  }

  /** Takes a sequence out, wherever it stands. Returns whether it was there. */
  delete(sequence: Sequence): boolean {
    if (this.#fresh.delete(sequence)) return true;
    const at = this.#preempted.lastIndexOf(sequence);
    if (at < 0) return false;
    this.#preempted.splice(at, 1);
    return true;
  }

  /** Lists them in order. */
  list(): Sequence[] {
    return [...[...this.#preempted].reverse(), ...this.#fresh];
  }
}
