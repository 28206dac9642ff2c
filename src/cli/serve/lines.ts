import type { Writable } from "node:stream";

/** Bytes of lines that may wait for a reader. */
export const LINE_BYTES_MAX = 8_388_608;

/**
 * Writes lines to a stream, all of one turn of the event loop at once. A reader that is too slow costs lines, and never
 * memory without end: they are counted, and somebody is told as soon as there is room again.
 */
export class Lines {
  readonly #stream: Writable;
  readonly #onDropped: (lines: number) => void;
  readonly #maxBytes: number;
  #pending = "";
  #turn: NodeJS.Immediate | undefined;
  #dropped = 0;

  constructor(stream: Writable, onDropped: (lines: number) => void, maxBytes = LINE_BYTES_MAX) {
    this.#stream = stream;
    this.#onDropped = onDropped;
    this.#maxBytes = maxBytes;
  }

  /** Takes a line with its end. */
  write(line: string): void {
    if (this.#stream.writableLength + this.#pending.length + line.length > this.#maxBytes) {
      this.#dropped++;
      return;
    }
    this.#pending += line;
    this.#turn ??= setImmediate(() => this.#flush());
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(dropped);
  }

  /** Writes what waits, and resolves when the stream has taken it, or cannot any more. */
  async end(): Promise<void> {
    this.#flush();
    await new Promise<void>((resolve) => this.#stream.write("", () => resolve()));
  }

  #flush(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
    const text = this.#pending;
    this.#pending = "";
    if (text !== "" && this.#stream.writable) this.#stream.write(text);
  }
}
