/** The base of every error that kvroute throws. `code` is stable and listed in docs/errors.md; the message is for people. */
export class KvrouteError extends Error {
  readonly code: `KVROUTE_${string}`;
  /** The HTTP status that the error maps to, where a server reports it. */
  readonly status?: number | undefined;

  constructor(code: `KVROUTE_${string}`, message: string, options?: { cause?: unknown; status?: number | undefined }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = options?.status;
  }
}

// --- Arguments ---

/** An argument has the wrong type: `KVROUTE_ARGUMENT_TYPE`. */
export class ArgumentTypeError extends KvrouteError {
  constructor(message: string) {
    super("KVROUTE_ARGUMENT_TYPE", message, { status: 400 });
  }
}

/** An argument has the right type and lies outside its range: `KVROUTE_ARGUMENT_RANGE`. */
export class ArgumentRangeError extends KvrouteError {
  constructor(message: string) {
    super("KVROUTE_ARGUMENT_RANGE", message, { status: 400 });
  }
}

/** A pool cannot have the capacity asked for: `KVROUTE_CAPACITY`. */
export class CapacityError extends KvrouteError {
  constructor(message: string) {
    super("KVROUTE_CAPACITY", message, { status: 400 });
  }
}

// --- Block pool ---

/** A hash of the prefix has no resident copy: `KVROUTE_MISSING_PREFIX`. */
export class MissingPrefixError extends KvrouteError {
  readonly hash: bigint;
  /** Where in the prefix the first missing hash stands. */
  readonly index: number;

  constructor(hash: bigint, index: number) {
    super(
      "KVROUTE_MISSING_PREFIX",
      `Expected every hash of the prefix to be resident, but ${hash} at index ${index} is not. Ask matchPrefix or use reserveResidentPrefix.`,
    );
    this.hash = hash;
    this.index = index;
  }
}

/** What is wrong with a copy that a batch names. */
export type CopyErrorCode =
  | "KVROUTE_UNKNOWN_COPY"
  | "KVROUTE_NOT_REFERENCED"
  | "KVROUTE_ALREADY_CACHED"
  | "KVROUTE_DUPLICATE_COPY";

/** The base of the errors about one copy of a batch. */
export class CopyError extends KvrouteError {
  readonly id: number;
  /** Where in the batch the refused id stands; 0 for a single call. */
  readonly index: number;

  constructor(code: CopyErrorCode, expectation: string, id: number, index: number) {
    super(code, `Expected ${expectation}, got copy ${id} at index ${index}.`);
    this.id = id;
    this.index = index;
  }
}

/** No live copy answers to the id; it was released or evicted, or never existed: `KVROUTE_UNKNOWN_COPY`. */
export class UnknownCopyError extends CopyError {
  constructor(id: number, index: number) {
    super("KVROUTE_UNKNOWN_COPY", "the id of a copy that this pool holds", id, index);
  }
}

/** A cached copy is released more often than it is referenced: `KVROUTE_NOT_REFERENCED`. */
export class NotReferencedError extends CopyError {
  constructor(id: number, index: number) {
    super("KVROUTE_NOT_REFERENCED", "a copy with a reference left to release", id, index);
  }
}

/** A copy enters the cache a second time: `KVROUTE_ALREADY_CACHED`. */
export class AlreadyCachedError extends CopyError {
  constructor(id: number, index: number) {
    super("KVROUTE_ALREADY_CACHED", "a private copy that is not cached yet", id, index);
  }
}

/** A batch names a private copy twice: `KVROUTE_DUPLICATE_COPY`. */
export class DuplicateCopyError extends CopyError {
  constructor(id: number, index: number) {
    super("KVROUTE_DUPLICATE_COPY", "every private copy once in a batch", id, index);
  }
}

/** A reservation is used on a pool that did not make it: `KVROUTE_FOREIGN_RESERVATION`. */
export class ForeignReservationError extends KvrouteError {
  constructor() {
    super("KVROUTE_FOREIGN_RESERVATION", "Expected a reservation that this pool made, got one of another pool.");
  }
}

/** A reservation is used after it was cancelled: `KVROUTE_RESERVATION_CLOSED`. */
export class ReservationClosedError extends KvrouteError {
  constructor() {
    super("KVROUTE_RESERVATION_CLOSED", "Expected an open reservation, got one that was cancelled.");
  }
}

/** More blocks are taken from a reservation than it has left: `KVROUTE_RESERVATION_EXHAUSTED`. */
export class ReservationExhaustedError extends KvrouteError {
  constructor(left: number, wanted: number) {
    super(
      "KVROUTE_RESERVATION_EXHAUSTED",
      `Expected to allocate at most ${left} blocks, the room that the reservation has left, got ${wanted}.`,
    );
  }
}

/** References and pins of a pool together would pass their limit: `KVROUTE_REFERENCES_EXHAUSTED`. */
export class ReferencesExhaustedError extends KvrouteError {
  constructor(most: number, wanted: number) {
    super(
      "KVROUTE_REFERENCES_EXHAUSTED",
      `Expected at most ${most} references and pins in a pool, but this reservation of ${wanted} blocks would pass them.`,
    );
  }
}

/** Every slot number has spent all its generations, so no new id can be told from an old one: `KVROUTE_IDS_EXHAUSTED`. */
export class IdsExhaustedError extends KvrouteError {
  constructor(numbers: number) {
    super(
      "KVROUTE_IDS_EXHAUSTED",
      `Expected an id that was never used, but all ${numbers} slot numbers have spent their generations. Make a new pool.`,
    );
  }
}

// --- Prefix index ---

/** An index knows as many workers, with their ranks, as it can: `KVROUTE_WORKERS_EXHAUSTED`. */
export class WorkersExhaustedError extends KvrouteError {
  constructor(most: number) {
    super(
      "KVROUTE_WORKERS_EXHAUSTED",
      `Expected at most ${most} workers and ranks in an index, got one more. Call removeWorker for those that have left.`,
      { status: 503 },
    );
  }
}

// --- Selection service ---

/** No worker goes by the id, or it has no such rank: `KVROUTE_UNKNOWN_WORKER`. */
export class UnknownWorkerError extends KvrouteError {
  constructor(worker: string, reason = "is not in the catalog") {
    super("KVROUTE_UNKNOWN_WORKER", `Expected a worker that is registered, but worker ${worker} ${reason}.`, {
      status: 404,
    });
  }
}

/** Nothing was selected under the id, or no longer: `KVROUTE_UNKNOWN_SELECTION`. */
export class UnknownSelectionError extends KvrouteError {
  constructor(selectionId: string) {
    super(
      "KVROUTE_UNKNOWN_SELECTION",
      `Expected a pending selection, but there is none under the id "${selectionId}": it expired, was used, or was never made.`,
      { status: 404 },
    );
  }
}

/** Nothing is booked under the id, or no longer: `KVROUTE_UNKNOWN_BOOKING`. */
export class UnknownBookingError extends KvrouteError {
  constructor(selectionId: string) {
    super(
      "KVROUTE_UNKNOWN_BOOKING",
      `Expected a live booking, but there is none under the id "${selectionId}": it was freed, its lease ran out, or it was never made.`,
      { status: 404 },
    );
  }
}

/** The id is booked for something else: `KVROUTE_BOOKING_CONFLICT`. */
export class BookingConflictError extends KvrouteError {
  constructor(selectionId: string, difference: string) {
    super(
      "KVROUTE_BOOKING_CONFLICT",
      `Expected the id "${selectionId}" to be free or to be booked for the same request, but ${difference}.`,
      { status: 409 },
    );
  }
}

/** No worker may serve the request: `KVROUTE_NO_WORKER`. The message says which filter left none. */
export class NoWorkerError extends KvrouteError {
  /** After which time one may serve it, where that is known. */
  readonly retryAfterMs?: number | undefined;

  constructor(reason: string, options?: { retryAfterMs?: number | undefined }) {
    super("KVROUTE_NO_WORKER", `Expected a worker that may serve the request, but ${reason}.`, { status: 503 });
    this.retryAfterMs = options?.retryAfterMs;
  }
}

/** Every worker that may serve the request is busy: `KVROUTE_WORKERS_BUSY`. */
export class WorkersBusyError extends KvrouteError {
  constructor(busy: number) {
    super(
      "KVROUTE_WORKERS_BUSY",
      `Expected a worker below the busy thresholds, but all ${busy} that may serve the request are above them.`,
      { status: 429 },
    );
  }
}

/** What of the selection service can be full. */
export type SelectionLimitCode = "KVROUTE_BOOKINGS_FULL" | "KVROUTE_CATALOG_FULL" | "KVROUTE_QUEUE_FULL";

/** A container of the selection service is full; nothing has changed. The message names its limit. */
export class SelectionLimitError extends KvrouteError {
  constructor(code: SelectionLimitCode, what: string, most: number) {
    super(code, `Expected at most ${most} ${what}, got one more.`, { status: 429 });
  }
}

// --- Requests over HTTP ---

const REQUEST_STATUSES = {
  KVROUTE_HTTP_BODY: 400,
  KVROUTE_HTTP_FIELD: 400,
  KVROUTE_HTTP_UNAUTHORIZED: 401,
  KVROUTE_HTTP_NOT_FOUND: 404,
  KVROUTE_HTTP_METHOD: 405,
  KVROUTE_HTTP_TOO_LARGE: 413,
  KVROUTE_HTTP_MEDIA_TYPE: 415,
  KVROUTE_HTTP_INTERNAL: 500,
} as const;

/** What can be wrong with a request over HTTP. */
export type HttpRequestErrorCode = keyof typeof REQUEST_STATUSES;

/** A request over HTTP cannot be served; nothing has changed. */
export class HttpRequestError extends KvrouteError {
  constructor(code: HttpRequestErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, { ...options, status: REQUEST_STATUSES[code] });
  }
}

// --- Gateway ---

/** What can be wrong with the body of a request to an engine. */
export type BodyErrorCode =
  | "KVROUTE_BODY_FIELD"
  | "KVROUTE_BODY_NOT_JSON"
  | "KVROUTE_BODY_NOT_OBJECT"
  | "KVROUTE_BODY_TOO_COMPLEX";

/** The body of a request to an engine cannot be read; nothing was sent. */
export class BodyError extends KvrouteError {
  constructor(code: BodyErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, { ...options, status: 400 });
  }
}

// --- Booked blocks ---

/** A hash is not booked, or not as often as the call says: `KVROUTE_NOT_BOOKED`. */
export class NotBookedError extends KvrouteError {
  readonly hash: bigint;
  /** Where in the list the first such hash stands. */
  readonly index: number;

  constructor(hash: bigint, index: number) {
    super(
      "KVROUTE_NOT_BOOKED",
      `Expected every hash to be booked as often as the call names it, but ${hash} at index ${index} is not.`,
    );
    this.hash = hash;
    this.index = index;
  }
}

/** As many blocks are booked as a table keeps: `KVROUTE_BLOCKS_EXHAUSTED`. */
export class BlocksExhaustedError extends KvrouteError {
  constructor(most: number, wanted: number) {
    super(
      "KVROUTE_BLOCKS_EXHAUSTED",
      `Expected at most ${most} booked blocks, each counted once a worker, but this booking of ${wanted} blocks would pass them.`,
      { status: 503 },
    );
  }
}

// --- The core and its memory ---

/** The core would need more memory than `maxMemoryBytes`, or than the runtime grants: `KVROUTE_MEMORY_LIMIT`. */
export class MemoryLimitError extends KvrouteError {
  readonly wantedBytes: number;
  readonly maxBytes: number;

  constructor(wantedBytes: number, maxBytes: number, options?: { cause?: unknown }) {
    const refused = wantedBytes <= maxBytes ? "the runtime refused to grant" : "maxMemoryBytes does not allow";
    super(
      "KVROUTE_MEMORY_LIMIT",
      `Expected to stay within ${maxBytes} bytes of memory, but the call needs ${wantedBytes} bytes, which ${refused}.`,
      { ...options, status: 503 },
    );
    this.wantedBytes = wantedBytes;
    this.maxBytes = maxBytes;
  }
}

/** The object was disposed of: `KVROUTE_DISPOSED`. */
export class DisposedError extends KvrouteError {
  constructor(what: string) {
    super("KVROUTE_DISPOSED", `Expected a ${what} that is in use, got one that was disposed of.`);
  }
}

/** The WebAssembly core cannot be compiled or instantiated here: `KVROUTE_CORE_UNAVAILABLE`. */
export class CoreUnavailableError extends KvrouteError {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      "KVROUTE_CORE_UNAVAILABLE",
      `Expected a runtime that compiles and instantiates WebAssembly, but it said: ${reason}`,
      { cause, status: 500 },
    );
  }
}

/** The core found one of its invariants broken and stopped; its object cannot be used again: `KVROUTE_CORE_PANIC`. */
export class CorePanicError extends KvrouteError {
  /** The number of the reason, a `Panic` of src/abi.ts. */
  readonly reason: number;
  /** Where the failed assertion stands, such as `assembly/pool.ts:42`; empty for other reasons. */
  readonly place: string;

  constructor(reason: number, place: string, cause: unknown) {
    super(
      "KVROUTE_CORE_PANIC",
      `Expected the invariants of the core to hold, but one is broken (panic ${reason}${place && ` at ${place}`}). This is a bug in kvroute; please report it. The object cannot be used again.`,
      { cause, status: 500 },
    );
    this.reason = reason;
    this.place = place;
  }
}

// --- Selection, simulator and command line ---

/** An option of a policy, of a replay or of the trace generator lies outside its range: `KVROUTE_OPTION`. */
export class OptionError extends KvrouteError {
  constructor(message: string) {
    super("KVROUTE_OPTION", message);
  }
}

/** What can be wrong with a trace. */
export type TraceErrorCode =
  | "KVROUTE_TRACE_EMPTY"
  | "KVROUTE_TRACE_FIELD"
  | "KVROUTE_TRACE_FORM"
  | "KVROUTE_TRACE_GZIP"
  | "KVROUTE_TRACE_LINE_TOO_LONG"
  | "KVROUTE_TRACE_NOT_JSON"
  | "KVROUTE_TRACE_NOT_UTF8";

/** Where in a trace something is wrong. */
export interface TracePlace {
  /** The name under which the trace was opened. */
  readonly file: string;
  /** Counts from 1. Absent when the trace as a whole is wrong. */
  readonly line?: number | undefined;
  readonly field?: string | undefined;
}

/** A trace cannot be read. The message starts with the place, in the form `file:line: `. */
export class TraceError extends KvrouteError implements TracePlace {
  readonly file: string;
  readonly line?: number | undefined;
  readonly field?: string | undefined;

  constructor(code: TraceErrorCode, place: TracePlace, problem: string, options?: { cause?: unknown }) {
    const where = place.line === undefined ? place.file : `${place.file}:${place.line}`;
    const what = place.field === undefined ? problem : `field "${place.field}" ${problem}`;
    super(code, `${where}: ${what}`, options);
    this.file = place.file;
    this.line = place.line;
    this.field = place.field;
  }
}

/** A replay would hold more than its limit allows: `KVROUTE_REPLAY_LIMIT`. */
export class ReplayLimitError extends KvrouteError {
  constructor(expectation: string, advice: string) {
    super("KVROUTE_REPLAY_LIMIT", `Expected ${expectation}. ${advice}`);
  }
}

/** A file cannot be read or written: `KVROUTE_FILE`. */
export class FileError extends KvrouteError {
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super("KVROUTE_FILE", `${path}: ${problem}`, options);
  }
}

export type ServeErrorCode = "KVROUTE_SERVE_ADDRESS" | "KVROUTE_SERVE_CUT_OFF";

/** A server of the command line cannot listen, or has broken requests off when it stopped. */
export class ServeError extends KvrouteError {
  constructor(code: ServeErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }
}

// --- Events of engines ---

/** What can be wrong with the events of an engine. */
export type KvEventErrorCode = "KVROUTE_KV_EVENT_PAYLOAD" | "KVROUTE_KV_EVENT_FIELD" | "KVROUTE_KV_EVENT_RANKS";

/** The events of an engine cannot be decoded or taken; nothing of the message was applied. */
export class KvEventError extends KvrouteError {
  /** The field that is wrong, such as `token_ids[3]`, under `KVROUTE_KV_EVENT_FIELD`. */
  readonly field?: string | undefined;

  constructor(code: KvEventErrorCode, message: string, options?: { cause?: unknown; field?: string | undefined }) {
    super(code, message, { ...options, status: 400 });
    this.field = options?.field;
  }
}

// --- Prefill here, decode there ---

/** What can be wrong with the choice of a worker, or with the list of workers. */
export type PlacementErrorCode =
  | "KVROUTE_NO_WORKERS"
  | "KVROUTE_DUPLICATE_RANK"
  | "KVROUTE_UNKNOWN_RANK"
  | "KVROUTE_TOO_MANY_RANKS"
  | "KVROUTE_RELEASE_IDLE";

/** A worker cannot be chosen, released, added or drained; nothing has changed. */
export class PlacementError extends KvrouteError {
  constructor(code: PlacementErrorCode, message: string) {
    super(code, message, { status: code === "KVROUTE_NO_WORKERS" ? 503 : undefined });
  }
}

/** Bytes are not the message that they should be: `KVROUTE_PROTOCOL_SIZE`. */
export class ProtocolError extends KvrouteError {
  constructor(message: string) {
    super("KVROUTE_PROTOCOL_SIZE", message, { status: 502 });
  }
}

/** What can go wrong between ranks. */
export type TransportErrorCode =
  | "KVROUTE_TRANSPORT_CLOSED"
  | "KVROUTE_TRANSPORT_BROKEN"
  | "KVROUTE_TRANSPORT_UNKNOWN_RANK"
  | "KVROUTE_TRANSPORT_PEER_LOST"
  | "KVROUTE_TRANSPORT_TOO_LARGE"
  | "KVROUTE_TRANSPORT_BUSY"
  | "KVROUTE_TRANSPORT_RECEIVING"
  | "KVROUTE_TRANSPORT_REFUSED"
  | "KVROUTE_TRANSPORT_FRAME";

/** An envelope cannot be sent or received; the code says which end of the way is to blame. */
export class TransportError extends KvrouteError {
  constructor(code: TransportErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, { ...options, status: 502 });
  }
}

// --- Disaggregated prefill and decode ---

/** How a disaggregated request can fail. */
export type DisaggErrorCode =
  | "KVROUTE_DISAGG_BUSY"
  | "KVROUTE_DISAGG_CLOSED"
  | "KVROUTE_DISAGG_KV_REFUSED"
  | "KVROUTE_DISAGG_PROTOCOL"
  | "KVROUTE_DISAGG_TIMEOUT"
  | "KVROUTE_DISAGG_WORKER_FAILED"
  | "KVROUTE_DISAGG_WORKER_LOST";

const DISAGG_STATUS: Readonly<Record<DisaggErrorCode, number>> = {
  KVROUTE_DISAGG_BUSY: 503,
  KVROUTE_DISAGG_CLOSED: 503,
  KVROUTE_DISAGG_KV_REFUSED: 502,
  KVROUTE_DISAGG_PROTOCOL: 502,
  KVROUTE_DISAGG_TIMEOUT: 504,
  KVROUTE_DISAGG_WORKER_FAILED: 502,
  KVROUTE_DISAGG_WORKER_LOST: 502,
};

/** A disaggregated request ended without a complete answer. */
export class DisaggError extends KvrouteError {
  /** How many tokens of the answer had arrived. */
  readonly tokens: number;
  /** The rank of the worker that it failed at, where it is one worker's. */
  readonly rank?: number | undefined;

  constructor(
    code: DisaggErrorCode,
    message: string,
    options?: { cause?: unknown; tokens?: number | undefined; rank?: number | undefined },
  ) {
    super(code, message, { cause: options?.cause, status: DISAGG_STATUS[code] });
    this.tokens = options?.tokens ?? 0;
    this.rank = options?.rank;
  }
}

// --- The engine of the simulator ---

/** Why an engine takes no request. */
export type EngineErrorCode = "KVROUTE_ENGINE_CLOSED" | "KVROUTE_ENGINE_FULL" | "KVROUTE_ENGINE_TOO_LONG";

const ENGINE_STATUS: Readonly<Record<EngineErrorCode, number>> = {
  KVROUTE_ENGINE_CLOSED: 503,
  KVROUTE_ENGINE_FULL: 503,
  KVROUTE_ENGINE_TOO_LONG: 400,
};

/** A simulated engine does not take a request. */
export class EngineError extends KvrouteError {
  constructor(code: EngineErrorCode, message: string) {
    super(code, message, { status: ENGINE_STATUS[code] });
  }
}

// --- Router ---

const ROUTER_STATUS = {
  KVROUTE_GATEWAY_BODY_TOO_LARGE: 413,
  KVROUTE_GATEWAY_CLOSED: 503,
  KVROUTE_GATEWAY_MODEL: 404,
  KVROUTE_GATEWAY_NOT_LOADED: 503,
  KVROUTE_GATEWAY_PATH: 404,
  KVROUTE_GATEWAY_REQUEST: 400,
  KVROUTE_GATEWAY_UNAUTHORIZED: 401,
} as const;

/** Why a router does not take a request. */
export type GatewayErrorCode = keyof typeof ROUTER_STATUS;

/** A router does not take a request: no worker has seen it. */
export class GatewayError extends KvrouteError {
  constructor(code: GatewayErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, { ...options, status: ROUTER_STATUS[code] });
  }
}

/** Why a router does not let a request wait, or not any longer. */
export type QueueErrorCode = "KVROUTE_GATEWAY_QUEUE_FULL" | "KVROUTE_GATEWAY_QUEUE_TIMEOUT";

/** All workers that could have the request are busy, and it cannot wait for one: no worker has seen it. */
export class QueueError extends KvrouteError {
  /** After which time there may be room, as far as it can be told. */
  readonly retryAfterMs: number;

  constructor(code: QueueErrorCode, message: string, retryAfterMs: number) {
    super(code, message, { status: 429 });
    this.retryAfterMs = retryAfterMs;
  }
}

const UPSTREAM_STATUS = {
  KVROUTE_UPSTREAM_BROKEN: 502,
  KVROUTE_UPSTREAM_STALLED: 504,
  KVROUTE_UPSTREAM_UNREACHABLE: 502,
} as const;

/** How a worker can fail a request. */
export type UpstreamErrorCode = keyof typeof UPSTREAM_STATUS;

/** A worker took a request and did not answer it whole. The message names the worker, and nothing else of the network. */
export class UpstreamError extends KvrouteError {
  constructor(code: UpstreamErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, { ...options, status: UPSTREAM_STATUS[code] });
  }
}
