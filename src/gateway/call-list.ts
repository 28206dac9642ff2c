import type { Call } from "./call.js";

/**
 * The calls that are under way. A `Set` would do, but V8 makes its table anew after every so many deletes, and the tables that
 * it leaves behind keep alive what stood in them; here whoever leaves points to nobody.
 */
export class CallList implements Iterable<Call> {
  #first: Call | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a call that is not there. */
  add(call: Call): void {
    call.after = this.#first;
    if (this.#first !== null) this.#first.before = call;
    this.#first = call;
    this.#size++;
  }

  /** Removes a call that is there. */
  delete(call: Call): void {
    const { before, after } = call;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after !== null) after.before = before;
    call.before = null;
    call.after = null;
    this.#size--;
  }

  /** Lists those that are there now, whatever becomes of them meanwhile. */
  [Symbol.iterator](): Iterator<Call> {
    const calls: Call[] = [];
    for (let call = this.#first; call !== null; call = call.after) calls.push(call);
    return calls[Symbol.iterator]();
  }
}
