import { KvrouteError, UpstreamError } from "../errors.js";
import type { Call } from "./call.js";
import type { AnswerReader } from "./stream.js";
import type { AnswerBody } from "./types.js";

/** What a body is made with. */
export interface CallBodyParts {
  readonly source: AnswerBody;
  readonly reader: AnswerReader;
  readonly call: Call;
  readonly workerId: string;
  /** Whether the status says that the answer is an error. */
  readonly isError: boolean;
  /** Is called behind each chunk that has been read. */
  readonly onRead: () => void;
  /** Is told where the worker's body could not be cancelled. */
  readonly onCancelFailed: () => void;
}

/** The body of an answer on its way to the caller: read while it passes, and settled by whichever of its ends comes first. */
export class CallBody implements AnswerBody {
  readonly #parts: CallBodyParts;
  /** What goes to the caller before more is fetched. */
  #ready: Uint8Array | undefined;
  #hasEnded = false;

  constructor(parts: CallBodyParts) {
    this.#parts = parts;
  }

  /**
   * Fetches the first bytes.
   *
   * @throws {UpstreamError} `KVROUTE_UPSTREAM_BROKEN` if the body breaks before them
   */
  async begin(): Promise<void> {
    this.#ready = await this.read();
  }

  async read(): Promise<Uint8Array | undefined> {
    const ready = this.#ready;
    this.#ready = undefined;
    if (ready !== undefined) return ready;
    const { source, call } = this.#parts;
    while (!this.#hasEnded) {
      let chunk: Uint8Array | undefined;
      try {
        chunk = await call.wait(source.read());
      } catch (error) {
        const last = this.#breakOff(error);
        return last.length > 0 ? last : undefined;
      }
      const passing = this.#pass(chunk);
      if (passing.length > 0) return passing;
    }
    return undefined;
  }

  async cancel(reason?: unknown): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#ready = undefined;
    this.#settle("aborted");
    this.#cancelSource(reason);
    this.#parts.call.cut("aborted", reason);
  }

  /** Reads a chunk, and gives what of it can go to the caller. */
  #pass(chunk: Uint8Array | undefined): Uint8Array {
    const { reader, call, onRead } = this.#parts;
    call.progress();
    if (chunk === undefined) return this.#end();
    const passing = reader.push(chunk);
    onRead();
    if (reader.hasEnded) this.#settle("completed");
    return passing;
  }

  #end(): Uint8Array {
    const { reader, call, workerId } = this.#parts;
    const { rest, isWhole } = reader.end();
    if (isWhole || reader.hasEnded) {
      this.#settle("completed");
      return this.#close(rest);
    }
    call.settle("failed");
    return this.#close(reader.farewell(broken(workerId, "it ended before its end")) ?? rest);
  }

  /** Ends a body that broke off, or that was cut: with the protocol's own words if it has any, else with an error. */
  #breakOff(cause: unknown): Uint8Array {
    const { reader, call, workerId } = this.#parts;
    const { reason } = call.signal;
    call.settle("failed");
    this.#cancelSource(cause);
    this.#close();
    if (call.isAbandoned) throw reason;
    if (reader.hasEnded) return reader.end().rest; // nothing is missing
    const error: KvrouteError =
      reason instanceof KvrouteError ? reason : broken(workerId, "the connection broke", cause);
    const farewell = reader.farewell(error);
    if (farewell === undefined) throw error;
    return farewell;
  }

  #close(last: Uint8Array = new Uint8Array(0)): Uint8Array {
    this.#hasEnded = true;
    this.#parts.call.close();
    return last;
  }

  /** Settles by what the engine said, where it said all, else by how the body ended. */
  #settle(end: "completed" | "aborted"): void {
    const { reader, call, isError } = this.#parts;
    if (end === "aborted" && !reader.hasEnded) call.settle("aborted");
    else if (isError) call.settle("rejected");
    else call.settle(reader.hasFailed ? "failed" : "completed");
  }

  #cancelSource(reason: unknown): void {
    const { source, onCancelFailed } = this.#parts;
    // A body that broke says so again when it is cancelled: that is no news.
    const onRejected = (error: unknown) => {
      if (error !== reason && error !== this.#parts.call.signal.reason) onCancelFailed();
    };
    try {
      source.cancel(reason).catch(onRejected);
    } catch (error) {
      onRejected(error);
    }
  }
}

function broken(workerId: string, how: string, cause?: unknown): UpstreamError {
  const message = `Expected the whole answer of worker "${workerId}", but ${how}.`;
  return new UpstreamError("KVROUTE_UPSTREAM_BROKEN", message, { cause });
}
