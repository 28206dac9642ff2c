import type { HeaderList } from "./header-list.js";
import type { StopSignal } from "./stop.js";

/** A request as the pipeline works on it, whoever received it. */
export interface GatewayRequest {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  /** The query with its question mark, or nothing. */
  readonly query: string;
  readonly headers: HeaderList;
  /** The body as the caller made it. It goes to the worker unchanged, and nobody may write to it. */
  readonly bytes?: Uint8Array | undefined;
  /** The same body, where the caller gave it as a text: decoding takes as long as parsing. */
  readonly text?: string | undefined;
  /** Names the tenant where the server knows it. Default: the credentials in the headers do. */
  readonly tenant?: string | undefined;
  /** Aborts when the caller has gone. */
  readonly signal?: StopSignal | undefined;
  /** Keeps the runtime awake until a promise settles, where a runtime has to be asked. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

/** An answer: what an engine gave, or the router itself. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderList;
  readonly body?: AnswerBody | undefined;
}

/** The body of an answer, taken chunk by chunk: what nobody asks for is not fetched, so that slow readers slow the engine. */
export interface AnswerBody {
  /** Gives the next bytes, `undefined` at the end. Rejects where the body breaks off. One read at a time. */
  read(): Promise<Uint8Array | undefined>;
  /** Says that the rest is not wanted. */
  cancel(reason?: unknown): Promise<void>;
}

/** How a request ended. */
export type Outcome =
  /** The engine answered, whole. */
  | "completed"
  /** The engine answered, with an error status. */
  | "rejected"
  /** The engine could not be reached, broke off, or sent what is no answer. */
  | "failed"
  /** The caller went away. */
  | "aborted"
  /** Nothing moved for longer than the limit. */
  | "stalled";

/** How many requests ended in each way. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>;

/** Makes counters of outcomes, all zero. */
export function noOutcomes(): Record<Outcome, number> {
  return { completed: 0, rejected: 0, failed: 0, aborted: 0, stalled: 0 };
}

/** How a request can end that has come to a queue. */
export type Ending = "admittedAtOnce" | "admittedAfterWaiting" | "refused" | "timedOut" | "cancelled" | "failed";

/** What became of the requests that came to a queue. Whatever has come and waits no more is in one of the others. */
export interface AdmissionStats {
  readonly waiting: number;
  readonly admittedAtOnce: number;
  readonly admittedAfterWaiting: number;
  /** There was no room. */
  readonly refused: number;
  readonly timedOut: number;
  /** Their callers went away. */
  readonly cancelled: number;
  /** Their attempts threw, or the queue was closed. */
  readonly failed: number;
}

/** Counts none of each. */
export function noEndings(): Record<Ending, number> {
  return { admittedAtOnce: 0, admittedAfterWaiting: 0, refused: 0, timedOut: 0, cancelled: 0, failed: 0 };
}
