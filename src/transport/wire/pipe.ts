import type { FrameBytes } from "./frames.js";

/** What a pipe tells the one who holds its end. */
export interface PipeListener {
  /** A frame has come; its memory is the listener's. */
  onFrame(frame: FrameBytes): void;
  /** Nothing comes any more, and nothing can be posted. Told once. */
  onClose(reason: string, cause?: unknown): void;
}

/** One end of a channel that carries frames in order: a MessagePort, a WebSocket, or a pair within a process. */
export interface Pipe {
  /** Begins to hand over what comes, also what came before. Called once. */
  listen(listener: PipeListener): void;

  /** Posts a frame and takes its memory over. After the pipe has closed it does nothing. */
  post(frame: FrameBytes): void;

  /** Closes after what was posted. Settles when the channel beneath is closed. */
  close(): Promise<void>;
}

/** Makes a pipe within a process. What is posted arrives after the present step, in order. */
export function pipePair(): [Pipe, Pipe] {
  const left = new PairEnd();
  const right = new PairEnd();
  left.other = right;
  right.other = left;
  return [left, right];
}

const HANG_UP = null;

class PairEnd implements Pipe {
  other: PairEnd | null = null;
  #listener: PipeListener | null = null;
  /** What has come and was not handed over. It waits for one step, and before that for the listener. */
  #arrivals: (FrameBytes | typeof HANG_UP)[] = [];
  #isClosed = false;

  listen(listener: PipeListener): void {
    this.#listener = listener;
    if (this.#arrivals.length > 0) queueMicrotask(() => this.#handOver());
  }

  post(frame: FrameBytes): void {
    if (!this.#isClosed) this.other?.arrive(frame);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.other?.arrive(HANG_UP);
  }

  arrive(arrival: FrameBytes | typeof HANG_UP): void {
    this.#arrivals.push(arrival);
    if (this.#arrivals.length === 1 && this.#listener !== null) queueMicrotask(() => this.#handOver());
  }

  #handOver(): void {
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    for (const arrival of arrivals) {
      if (this.#isClosed) return;
      if (arrival !== HANG_UP) this.#listener?.onFrame(arrival);
      else {
        this.#isClosed = true;
        this.#listener?.onClose("the other side closed");
      }
    }
  }
}
