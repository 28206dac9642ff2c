/** What a transport carries from one rank to another. */
export interface Envelope {
  /** The rank that sent it, 0 to 2^32 - 1. */
  readonly source: number;
  /** The rank that it is for, 0 to 2^32 - 1. */
  readonly destination: number;
  /** What kind of message `bytes` is, 0 to 2^32 - 1. */
  readonly tag: number;
  /** The rank of the router that the request belongs to: workers serve several routers, whose request ids coincide. */
  readonly router: number;
  /** The request that the message is about, an unsigned 64-bit integer. */
  readonly requestId: bigint;
  /**
   * Its place among the messages that `source` sends to `destination` about this request, from 0, to 2^32 - 1. Senders
   * count; a transport carries it as it is. By it a receiver puts in order what overtook, and tells what is missing.
   */
  readonly sequence: number;
  /**
   * The message itself. The transport takes it over: neither side changes it after it was sent, and the sender must not
   * read it either, since a transport between threads may have moved its memory away.
   */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface SendOptions {
  /** Gives up waiting for room. What was not handed over by then is not sent. */
  readonly signal?: AbortSignal | undefined;
}

export interface ReceiveOptions {
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal | undefined;
}

/** One end of a transport: the messages of one rank. Messages may overtake each other, and none is sent twice. */
export interface Transport {
  readonly rank: number;

  /**
   * Hands an envelope over, and waits while the way to its destination is full.
   *
   * @throws {TransportError} if the transport is closed, the destination is unknown or gone, or the envelope is too large;
   *   whatever `signal` was aborted with
   */
  send(envelope: Omit<Envelope, "source">, options?: SendOptions): Promise<void>;

  /**
   * Takes what arrives for this rank, in the order of arrival. One iteration at a time.
   *
   * Ends after `close()` was called on this end, once what has arrived before is taken.
   *
   * @throws {TransportError} if the transport broke; the error says why
   */
  receive(options?: ReceiveOptions): AsyncIterable<Envelope>;

  /** Calls `listener` when another rank is known to be gone. Returns what takes the listener off again. */
  onPeerLost(listener: (rank: number, reason: Error) => void): () => void;

  /** Closes this end: sends and receives stop, peers learn that it is gone. Closing twice is one close. */
  close(reason?: string): Promise<void>;
}
