import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";

export interface WebStreamOptions {
  /** Told the length of each chunk when it is taken. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
  /** Puts a failure of the stream in other words. */
  readonly explain?: ((cause: unknown) => unknown) | undefined;
}

/** Makes a Web stream of a Node stream of bytes. Cancelling destroys the Node stream at once, whatever it waits for. */
export function webStreamOf(readable: Readable, options: WebStreamOptions = {}): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = readable[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await chunks.next().catch((cause: unknown) => {
          throw options.explain?.(cause) ?? cause;
        });
        if (next.done === true) {
          controller.close();
        } else {
          options.onBytes?.(next.value.length);
          controller.enqueue(next.value);
        }
      },
      cancel() {
        readable.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Undoes gzip with Node's zlib, which reads several members in a row; the `DecompressionStream` of Node 24 does not. */
export function gunzip(compressed: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const plain = createGunzip();
  pipeline(Readable.from(chunksOf(compressed)), plain, () => undefined); // whoever reads `plain` meets the failure
  return webStreamOf(plain);
}

async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value } = await reader.read();
      if (value === undefined) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // the failure of a failed stream has been reported already
  }
}
