const NOTHING = new Uint8Array(0);

/** Puts chunks together; one alone stays as it is. */
export function joinBytes(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0] as Uint8Array;
  const filled = chunks.filter(({ length }) => length > 0);
  if (filled.length <= 1) return filled[0] ?? NOTHING;
  const all = new Uint8Array(filled.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of filled) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** What tells that nobody wants a body any more. An `AbortSignal` is one. */
interface EndSignal extends Pick<AbortSignal, "aborted" | "reason" | "throwIfAborted"> {
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Reads a body whole. One that is longer than `maxBytes` is given up, and any when the signal aborts.
 *
 * @throws what `tooLong` makes if it is longer; the reason of the signal; whatever the body fails with
 */
export async function readBytes(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  tooLong: () => Error,
  signal?: EndSignal | null,
): Promise<Uint8Array> {
  const reader = body.getReader();
  const giveUp = () => void reader.cancel(signal?.reason).catch(() => {}); // nobody waits for it
  signal?.addEventListener("abort", giveUp);
  if (signal?.aborted) giveUp();
  try {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
      length += next.value.length;
      if (length > maxBytes) {
        giveUp();
        throw tooLong();
      }
      chunks.push(next.value);
    }
    signal?.throwIfAborted(); // what is read of a body that was given up looks like all of it
    return joinBytes(chunks);
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}
