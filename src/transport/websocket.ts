import { ArgumentTypeError } from "../errors.js";
import { brokenError } from "./reasons.js";
import { type ConnectOptions, checkOptions, connect } from "./wire/connect.js";
import type { ConnectedTransport } from "./wire/end.js";
import { type FrameBytes, frameError } from "./wire/frames.js";
import type { Pipe, PipeListener } from "./wire/pipe.js";

/** What a transport needs of a WebSocket: the runtime's own, or one of the package ws. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  send(data: FrameBytes): void;
  close(code?: number, reason?: string): void;
  // biome-ignore lint/suspicious/noExplicitAny: the typings of every runtime must fit
  addEventListener(event: any, listener: (event: any) => void): void;
}

export interface WebSocketOptions extends ConnectOptions {
  /** Makes the connection; without it, the runtime's own WebSocket does, which Node has from version 22. */
  readonly WebSocket?: (new (url: string) => WebSocketLike) | undefined;
}

const CONNECTING = 0;
const OPEN = 1;
const NORMAL_CLOSURE = 1_000;
const UNSUPPORTED_DATA = 1_003;

/**
 * Connects a rank to a hub that listens at a URL.
 *
 * @throws {TransportError} `KVROUTE_TRANSPORT_BROKEN` if there is no connection; as for every hub,
 *   `KVROUTE_TRANSPORT_REFUSED`, `KVROUTE_TRANSPORT_FRAME`; whatever `signal` was aborted with
 */
export async function connectWebSocket(url: string | URL, options: WebSocketOptions): Promise<ConnectedTransport> {
  const Constructor = options.WebSocket ?? (globalThis.WebSocket as WebSocketOptions["WebSocket"]);
  if (typeof Constructor !== "function") {
    throw new ArgumentTypeError("Expected a runtime with a WebSocket or the option WebSocket, got neither.");
  }
  checkOptions(options);
  options.signal?.throwIfAborted();
  let socket: WebSocketLike;
  try {
    socket = new Constructor(String(url));
  } catch (cause) {
    throw brokenError(options.rank, `${url} cannot be opened`, cause);
  }
  return connect(webSocketPipe(socket), options);
}

/** Makes a pipe of a socket that is open or about to be. */
export function webSocketPipe(socket: WebSocketLike): Pipe {
  return new SocketPipe(socket);
}

class SocketPipe implements Pipe {
  readonly #socket: WebSocketLike;
  readonly #closed: Promise<void>;
  #settleClosed: () => void = () => undefined;
  #listener: PipeListener | null = null;
  /** What is posted before the socket is open: the greeting. */
  readonly #unsent: FrameBytes[] = [];
  /** Whether this side has closed, or has heard that the socket did. */
  #isClosed = false;

  constructor(socket: WebSocketLike) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    this.#closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
  }

  listen(listener: PipeListener): void {
    this.#listener = listener;
    const socket = this.#socket;
    let problem: string | undefined;
    socket.addEventListener("open", () => {
      for (const frame of this.#unsent.splice(0)) this.post(frame);
    });
    socket.addEventListener("message", (event) => this.#arrive(event.data));
    socket.addEventListener("error", (event) => {
      problem = event?.message;
    });
    socket.addEventListener("close", (event) => this.#hangUp(problem ?? closure(event)));
    if (socket.readyState > OPEN) this.#hangUp("the socket was closed");
  }

  post(frame: FrameBytes): void {
    if (this.#isClosed) return;
    if (this.#socket.readyState === CONNECTING) this.#unsent.push(frame);
    else if (this.#socket.readyState === OPEN) this.#socket.send(frame);
  }

  /** Closes after what was posted; settles when the closing handshake is done, for which every WebSocket has a bound. */
  close(): Promise<void> {
    this.#close(NORMAL_CLOSURE);
    return this.#closed;
  }

  #close(code: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close(code);
  }

  #arrive(data: unknown): void {
    if (this.#isClosed) return;
    if (data instanceof ArrayBuffer) {
      this.#listener?.onFrame(new Uint8Array(data));
      return;
    }
    this.#close(UNSUPPORTED_DATA);
    const error = frameError(`Expected binary messages, got one of type ${typeof data}`);
    this.#listener?.onClose("a message was no frame", error);
  }

  #hangUp(reason: string): void {
    this.#settleClosed();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listener?.onClose(reason);
  }
}

function closure(event: { readonly code?: number; readonly reason?: string } | undefined): string {
  const reason = event?.reason ? `: ${event.reason}` : "";
  return `the WebSocket was closed with code ${event?.code}${reason}`;
}
