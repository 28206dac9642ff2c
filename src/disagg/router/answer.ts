/** What an answer asks of the request behind it. */
export interface Source {
  /** The first token was asked for. */
  begin(): void;
  /** Nobody will ask for more. */
  leave(): void;
}

interface Waiting {
  readonly resolve: (result: IteratorResult<bigint, undefined>) => void;
  readonly reject: (reason: unknown) => void;
}

const DONE: IteratorResult<bigint, undefined> = Object.freeze({ done: true, value: undefined });

/** Tokens on their way from a request to whoever iterates: lazy, and for one reader. */
export class Answer implements AsyncIterableIterator<bigint, undefined, undefined> {
  readonly #source: Source;
  #tokens: bigint[] = [];
  #read = 0;
  readonly #waiting: Waiting[] = [];
  #state: "new" | "open" | "ended" = "new";
  #failure: { readonly error: unknown } | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<bigint, undefined>> {
    if (this.#state === "new") {
      this.#state = "open";
      this.#source.begin();
    }
    if (this.#read < this.#tokens.length) return Promise.resolve({ done: false, value: this.#shift() });
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) return Promise.reject(failure.error);
    if (this.#state === "ended") return Promise.resolve(DONE);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Leaves the answer: what has not been read is dropped, and the request is cancelled if it is not over. */
  return(): Promise<IteratorResult<bigint, undefined>> {
    const wasOpen = this.#state === "open";
    this.#failure = undefined;
    this.#end(true);
    if (wasOpen) this.#source.leave();
    return Promise.resolve(DONE);
  }

  push(token: bigint): void {
    if (this.#state === "ended") return;
    const reader = this.#waiting.shift();
    if (reader === undefined) this.#tokens.push(token);
    else reader.resolve({ done: false, value: token });
  }

  end(): void {
    this.#end(false);
  }

  /** Ends the answer with an error, which is thrown once; `atOnce` before the tokens that have not been read. */
  fail(error: unknown, atOnce: boolean): void {
    if (this.#state === "ended") return;
    const reader = this.#waiting.shift();
    if (reader === undefined) this.#failure = { error };
    else reader.reject(error);
    this.#end(atOnce);
  }

  #end(dropsTokens: boolean): void {
    this.#state = "ended";
    if (dropsTokens) {
      this.#tokens = [];
      this.#read = 0;
    }
    for (const { resolve } of this.#waiting.splice(0)) resolve(DONE);
  }

  #shift(): bigint {
    const token = this.#tokens[this.#read++] as bigint;
    if (this.#read === this.#tokens.length) {
      this.#tokens = [];
      this.#read = 0;
    }
    return token;
  }
}
