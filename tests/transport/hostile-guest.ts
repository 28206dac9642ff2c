import { decodeFrame, encodeFrame, type Frame, type FrameBytes } from "../../src/transport/wire/frames.js";
import { type Pipe, pipePair } from "../../src/transport/wire/pipe.js";

/** One end of a pipe in the hands of a test: it posts what it likes, and notes what comes. */
export class Hand {
  readonly heard: Frame[] = [];
  closed: string | null = null;
  readonly #pipe: Pipe;

  constructor(pipe: Pipe) {
    this.#pipe = pipe;
    pipe.listen({
      onFrame: (bytes) => this.heard.push(decodeFrame(bytes)),
      onClose: (reason) => {
        this.closed = reason;
      },
    });
  }

  /** Makes a pipe and takes one end of it. */
  static pair(): { hand: Hand; pipe: Pipe } {
    const [near, far] = pipePair();
    return { hand: new Hand(far), pipe: near };
  }

  post(frame: Frame | FrameBytes): void {
    this.#pipe.post(frame instanceof Uint8Array ? frame : encodeFrame(frame));
  }

  async close(): Promise<void> {
    await this.#pipe.close();
  }

  kinds(): string[] {
    return this.heard.map((frame) => frame.kind);
  }

  /** The last frame of a kind. */
  last<K extends Frame["kind"]>(kind: K): Extract<Frame, { kind: K }> | undefined {
    return this.heard.filter((frame): frame is Extract<Frame, { kind: K }> => frame.kind === kind).at(-1);
  }
}

/** Lets everything in a process arrive that is under way between pipes. */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Makes an envelope with a source, as a frame carries it. */
export function parcel(source: number, destination: number, size = 0) {
  return { source, destination, tag: 1, router: 0, requestId: 1n, sequence: 0, bytes: new Uint8Array(size) };
}
