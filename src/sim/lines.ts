const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines. A newline byte is never part of another UTF-8 character, so no text is needed. */
export class LineSplitter {
  readonly #lineBytesMax: number;
  #pieces: Uint8Array[] = []; // what has come of the current line in the chunks before
  #piecesBytes = 0;
  #tooLong = false;

  /** @param lineBytesMax bytes of the longest line that is kept, its newline not counted */
  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax;
  }

  /** Yields the lines that end in a chunk, without their newline; `null` for one that is too long. */
  *push(chunk: Uint8Array): Generator<Uint8Array | null> {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, to));
      from = to + 1;
      yield this.#take();
    }
    this.#keep(chunk.subarray(from));
  }

  /** Yields the last line, if the stream did not end with a newline. */
  *end(): Generator<Uint8Array | null> {
    if (this.#piecesBytes > 0) yield this.#take();
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0 || this.#tooLong) return;
    this.#pieces.push(piece);
    this.#piecesBytes += piece.length;
    if (this.#piecesBytes <= this.#lineBytesMax) return;
    this.#tooLong = true;
    this.#pieces = []; // a line without an end must not fill the memory
  }

  #take(): Uint8Array | null {
    const line = this.#tooLong ? null : join(this.#pieces, this.#piecesBytes);
    this.#pieces = [];
    this.#piecesBytes = 0;
    this.#tooLong = false;
    return line;
  }
}

/** Joins pieces of bytes; a single one is not copied. */
function join(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
