import { type ConnectOptions, connect } from "./wire/connect.js";
import type { ConnectedTransport } from "./wire/end.js";
import { type FrameBytes, frameError } from "./wire/frames.js";
import type { Pipe, PipeListener } from "./wire/pipe.js";

/**
 * What a transport needs of a port: a MessagePort of a browser or of `node:worker_threads`, a Worker, or `parentPort`.
 *
 * Node's form, `on`, is preferred where there are both. Nothing else may be sent over the port.
 */
export interface PortLike {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  start?(): void;
  close?(): void;
  // biome-ignore lint/suspicious/noExplicitAny: the typings of every runtime must fit
  on?(event: any, listener: (argument: any) => void): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: the typings of every runtime must fit
  addEventListener?(event: any, listener: (event: any) => void): void;
}

/** Frames of so many bytes or more change hands; smaller ones are copied, which is faster. */
const TRANSFER_MIN_BYTES = 16_384;

/**
 * Connects a rank over a port, at whose other end a hub is or will be: `hub.attach(messagePortPipe(port))`.
 *
 * Browsers before 2024 do not tell that the other end of a port is gone; there, the hub hears of those who close, not of
 * those who vanish.
 */
export function connectMessagePort(port: PortLike, options: ConnectOptions): Promise<ConnectedTransport> {
  return connect(messagePortPipe(port), options);
}

/** Makes a pipe of a port. */
export function messagePortPipe(port: PortLike): Pipe {
  return new PortPipe(port);
}

class PortPipe implements Pipe {
  readonly #port: PortLike;
  #listener: PipeListener | null = null;
  #isClosed = false;
  /** Whether the runtime has refused to move memory: workerd's ports only copy. */
  #onlyCopies = false;

  constructor(port: PortLike) {
    this.#port = port;
  }

  listen(listener: PipeListener): void {
    this.#listener = listener;
    const port = this.#port;
    const hangUp = (reason: string, cause?: unknown) => this.#hangUp(reason, cause);
    const unreadable = (cause: unknown) => hangUp("a message could not be read", frameError(UNREADABLE, cause));
    if (port.on !== undefined) {
      port.on("message", (data) => this.#arrive(data));
      port.on("messageerror", unreadable);
      port.on("close", () => hangUp("the port was closed"));
      let why: string | undefined;
      port.on("error", (error) => {
        why = `the thread threw: ${error?.message ?? error}`; // the exit follows, after what was sent before
      });
      port.on("exit", (code) => hangUp(why ?? `the thread ended with code ${code}`));
      return;
    }
    port.addEventListener?.("message", (event) => this.#arrive(event.data));
    port.addEventListener?.("messageerror", unreadable);
    port.addEventListener?.("close", () => hangUp("the port was closed"));
    port.addEventListener?.("error", (event) => hangUp(`the worker threw: ${event?.message}`, event));
    port.start?.();
  }

  post(frame: FrameBytes): void {
    if (this.#isClosed) return;
    const isWhole = frame.byteLength === frame.buffer.byteLength;
    if (this.#onlyCopies || !isWhole || frame.byteLength < TRANSFER_MIN_BYTES) {
      this.#port.postMessage(frame, []);
      return;
    }
    try {
      this.#port.postMessage(frame, [frame.buffer]);
    } catch {
      this.#port.postMessage(frame, []); // what fails for another reason fails again
      this.#onlyCopies = true;
    }
  }

  /** Closes the port; what was posted before still arrives. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#port.close?.();
  }

  #arrive(data: unknown): void {
    if (this.#isClosed) return;
    if (isFrame(data)) this.#listener?.onFrame(data);
    else
      this.#hangUp(
        "a message was no frame",
        frameError(`Expected bytes over the port, got a value of type ${typeof data}`),
      );
  }

  #hangUp(reason: string, cause: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#port.close?.();
    this.#listener?.onClose(reason, cause);
  }
}

const UNREADABLE = "Expected a message that can be read, got one that cannot";

/** Tells bytes of an ArrayBuffer. Shared memory, which somebody else may change meanwhile, is not taken. */
function isFrame(data: unknown): data is FrameBytes {
  return data instanceof Uint8Array && data.buffer instanceof ArrayBuffer;
}
