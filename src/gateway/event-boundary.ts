const LF = 0x0a;
const CR = 0x0d;

/**
 * Finds where whole events end in a stream of server-sent events, chunk by chunk: behind an empty line, whichever way lines
 * end, and wherever the chunks were cut.
 */
export class EventBoundary {
  #isLineEmpty = true;
  /** Whether the last byte was a CR: an LF behind it belongs to the same line end. */
  #isAfterCr = false;
  /** Whether the last line end that was seen ended an event. */
  #isAfterEvent = true;

  /** Goes over the next chunk. Returns how many of its bytes belong to events that have ended, 0 if none has. */
  advance(chunk: Uint8Array): number {
    let ended = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      const isOfCrLf = byte === LF && this.#isAfterCr;
      this.#isAfterCr = byte === CR;
      if (isOfCrLf) {
        if (this.#isAfterEvent) ended = at + 1;
      } else if (byte === LF || byte === CR) {
        this.#isAfterEvent = this.#isLineEmpty;
        this.#isLineEmpty = true;
        if (this.#isAfterEvent) ended = at + 1;
      } else {
        this.#isLineEmpty = false;
        this.#isAfterEvent = false;
      }
    }
    return ended;
  }
}
