/** Undoes gzip. The compressed stream fails, and so does the result, when the data is cut short or damaged. */
export type Gunzip = (compressed: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>;

/** Undoes gzip with what every runtime has. Newer runtimes refuse a file of several gzip members. */
export function gunzipWithWebStreams(compressed: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  return compressed.pipeThrough<Uint8Array>(new DecompressionStream("gzip") as ReadableWritablePair);
}

/** A stream of bytes whose start can be looked at, and whose own failures can be told from those of a decoder behind it. */
export class ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #peeked: Uint8Array[] = [];
  #failure: { readonly error: unknown } | undefined;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** What reading the stream failed with, if it did. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /** Tells whether the stream starts with the two bytes of gzip. Its name is not asked: names lie. */
  async startsAsGzip(): Promise<boolean> {
    const start: number[] = [];
    while (start.length < 2) {
      const chunk = await this.#read();
      if (chunk === undefined) return false;
      this.#peeked.push(chunk);
      start.push(...chunk.subarray(0, 2));
    }
    return start[0] === 0x1f && start[1] === 0x8b;
  }

  /** Gives all bytes of the stream, those looked at included. */
  bytes(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const chunk = this.#peeked.shift() ?? (await this.#read());
          if (chunk === undefined) controller.close();
          else controller.enqueue(chunk);
        },
        cancel: (reason) => this.#reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  /** Ends the reading and frees what stands behind the stream. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined); // the failure of a failed stream has been reported already
  }

  async #read(): Promise<Uint8Array | undefined> {
    try {
      const { value } = await this.#reader.read();
      return value;
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}
