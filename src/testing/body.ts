import { readBytes } from "../bytes.js";
import type { Clock } from "../clock.js";
import type { StreamEvent } from "./dialect.js";
import type { EitherSignal } from "./either-signal.js";
import { BrokenOff, type Fault } from "./faults.js";
import { HttpError } from "./http-error.js";

const encoder = /* @__PURE__ */ new TextEncoder();

/** The beginning of a two-byte character. */
const HALF_CHARACTER = 0xc3;

/**
 * Reads a body whole.
 *
 * @throws {HttpError} 413 if it is longer than `maxBytes`
 */
export async function readBody({ body }: Request, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array(0);
  const message = `Expected a body of at most ${maxBytes} bytes, got a longer one.`;
  return readBytes(body, maxBytes, () => new HttpError(413, "BadRequestError", message));
}

/** Encodes an event as server-sent events have it. */
export function encodeEvent({ event, data }: StreamEvent): Uint8Array {
  return encoder.encode(`${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`);
}

/** Encodes events, spoilt as the fault says. */
export async function* spoil(
  events: AsyncIterable<Uint8Array>,
  fault: Fault | undefined,
  wait: (ms: number) => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let count = 0;
  for await (const event of events) {
    if (fault?.kind === "slow") await wait(fault.delayMs);
    if (fault?.kind === "die" && count === (fault.afterEvents ?? 0)) {
      yield event.subarray(0, Math.ceil(event.length / 2));
      throw new BrokenOff("The engine died, as it was told to.");
    }
    if (fault?.kind === "truncate" && count === (fault.afterEvents ?? 0)) {
      yield Uint8Array.of(...event.subarray(0, Math.ceil(event.length / 2)), HALF_CHARACTER);
      return;
    }
    yield event;
    count++;
  }
}

/** Makes a body of chunks. Who cancels it, or the signal, ends it at once. */
export function streamOf(
  chunks: AsyncGenerator<Uint8Array, void, undefined>,
  signal: EitherSignal,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  let isOver = false;
  const end = () => {
    isOver = true;
    signal.unlisten(onAbort);
    onEnd();
  };
  let onAbort = end;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          if (isOver) return;
          end();
          controller.error(signal.reason);
        };
        if (signal.aborted) onAbort();
        else signal.listen(onAbort);
      },
      async pull(controller) {
        try {
          const { value } = await chunks.next();
          if (isOver) return;
          if (value !== undefined) return controller.enqueue(value);
          end();
          controller.close();
        } catch (cause) {
          if (isOver) return;
          end();
          controller.error(cause);
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

/** Waits so long, or until the signal, which makes it fail. */
export function waitFor(clock: Clock, signal: EitherSignal, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      clock.clearTimeout(timer);
      signal.unlisten(onAbort);
      reject(signal.reason);
    };
    const timer = clock.setTimeout(() => {
      signal.unlisten(onAbort);
      resolve();
    }, ms);
    signal.listen(onAbort);
  });
}

/** Waits for the signal alone, and fails then. */
export function untilAborted(signal: EitherSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      signal.unlisten(onAbort);
      reject(signal.reason);
    };
    signal.listen(onAbort);
  });
}
