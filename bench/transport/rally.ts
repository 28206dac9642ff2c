import type { Runner } from "../harness.js";
import type { Line } from "./line.js";

/** Sends, and waits for the answer before the next. */
export class Rally implements Runner {
  readonly #line: Line;

  constructor(
    line: Line,
    readonly operations: number,
    readonly bytes: number,
  ) {
    this.#line = line;
  }

  async run(): Promise<number> {
    let sum = 0;
    for (let turn = 0; turn < this.operations; turn++) {
      await this.#line.send(new Uint8Array(this.bytes), true);
      sum += await this.#line.answer();
    }
    return sum;
  }

  digest(): number {
    return this.operations;
  }

  finish(): number {
    return this.operations;
  }
}

/** Sends one after the other as fast as may be, and waits for the answer to the last. */
export class Stream extends Rally {
  readonly #line: Line;

  constructor(line: Line, operations: number, bytes: number) {
    super(line, operations, bytes);
    this.#line = line;
  }

  override async run(): Promise<number> {
    for (let left = this.operations; left > 0; left--) await this.#line.send(new Uint8Array(this.bytes), left === 1);
    return await this.#line.answer();
  }
}
