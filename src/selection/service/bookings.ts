import { SelectionLimitError, UnknownBookingError } from "../../errors.js";
import { type Aged, AgeOrder, NOT_LATE } from "../cache/age-order.js";
import { type Identified, IdTable } from "../cache/id-table.js";
import type { Partition } from "../catalog/partition.js";
import type { WorkerRow } from "../catalog/row.js";
import type { LoadBooking } from "../load.js";
import type { Booking } from "./types.js";

/** What a request was booked with: the same again is the same booking. */
export interface BookingInputs {
  readonly partition: Partition;
  readonly row: WorkerRow;
  readonly sequenceHashes: BigUint64Array;
  readonly islTokens: number;
  readonly effectivePrefillTokens: number;
  /** The same, where the caller said it. */
  readonly statedPrefillTokens?: number | undefined;
  readonly trackPrefillTokens: boolean;
  readonly expectedOutputTokens?: number | undefined;
  readonly session?: string | undefined;
  readonly tenant: string;
  /** Leading blocks that the worker was believed to hold. */
  readonly overlapBlocks: number;
}

/** A live booking. Its age is that of its lease. */
export class LiveBooking implements Aged<LiveBooking>, Identified<LiveBooking> {
  insertedAtMs = 0;
  generation = 0;
  older: LiveBooking | null = null;
  newer: LiveBooking | null = null;
  lateIndex = NOT_LATE;
  idHash = 0;
  chained: LiveBooking | null = null;
  /** Whether its first token has come. */
  hasAnswered = false;
  /** Whether its engine has said how much it had cached. */
  hasReported = false;

  constructor(
    readonly id: string,
    readonly inputs: BookingInputs,
    readonly load: LoadBooking,
  ) {}

  /** What a caller is told of it. */
  view(existing: boolean, leaseMs: number): Booking {
    const { partition, row, islTokens, effectivePrefillTokens, trackPrefillTokens } = this.inputs;
    return {
      selectionId: this.id,
      modelName: partition.modelName,
      routingGroup: partition.routingGroup,
      worker: row.worker,
      endpoint: row.entry.settings.endpoint,
      islTokens,
      effectivePrefillTokens,
      trackPrefillTokens,
      existing,
      expiresAtMs: this.insertedAtMs + leaseMs,
    };
  }
}

/** The live bookings by id, and in the order in which their leases run out. */
export class BookingTable {
  readonly #maxBookings: number;
  readonly #byId = new IdTable<LiveBooking>();
  readonly #leases = new AgeOrder<LiveBooking>();
  #renewals = 0;

  constructor(maxBookings: number) {
    this.#maxBookings = maxBookings;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The booking whose lease runs out first, `null` if there is none. */
  get oldest(): LiveBooking | null {
    return this.#leases.oldest;
  }

  find(selectionId: string): LiveBooking | undefined {
    return this.#byId.get(selectionId);
  }

  /** @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id */
  get(selectionId: string): LiveBooking {
    const booking = this.#byId.get(selectionId);
    if (booking === undefined) throw new UnknownBookingError(selectionId);
    return booking;
  }

  /** @throws {SelectionLimitError} `KVROUTE_BOOKINGS_FULL` if one more would be too many */
  checkRoom(): void {
    if (this.#byId.size < this.#maxBookings) return;
    throw new SelectionLimitError("KVROUTE_BOOKINGS_FULL", "bookings (maxBookings)", this.#maxBookings);
  }

  /** Adds a booking whose id has none, with a new lease. */
  add(booking: LiveBooking, nowMs: number): void {
    this.#byId.put(booking);
    this.#lease(booking, nowMs);
  }

  /** Begins the lease of a booking anew. */
  renew(booking: LiveBooking, nowMs: number): void {
    this.#leases.delete(booking);
    this.#lease(booking, nowMs);
  }

  delete(booking: LiveBooking): void {
    this.#byId.delete(booking);
    this.#leases.delete(booking);
  }

  /** Lists the bookings on some rows, in the order in which their leases run out, but for late ones. */
  on(rows: readonly WorkerRow[]): LiveBooking[] {
    const wanted = new Set(rows);
    return [...this.#leases].filter(({ inputs }) => wanted.has(inputs.row));
  }

  #lease(booking: LiveBooking, nowMs: number): void {
    booking.insertedAtMs = nowMs;
    booking.generation = this.#renewals++;
    this.#leases.add(booking);
  }
}

/** What a caller says again of a request that it has booked before. */
export interface ClaimedInputs extends Pick<BookingInputs, "sequenceHashes" | "islTokens" | "expectedOutputTokens"> {
  readonly partition: Partition | undefined;
  /** Absent where the service chose the worker: its choice may have changed since. */
  readonly row?: WorkerRow | undefined;
  readonly statedPrefillTokens?: number | undefined;
}

/** Says in what a request differs from the one that has its id, `undefined` if they are the same. */
export function differenceOf(known: BookingInputs, claimed: ClaimedInputs): string | undefined {
  const { partition } = known;
  if (partition !== claimed.partition) {
    return `it is booked for model "${partition.modelName}" in group "${partition.routingGroup}"`;
  }
  if (known.islTokens !== claimed.islTokens || !areEqual(known.sequenceHashes, claimed.sequenceHashes)) {
    return "it is booked for another prompt";
  }
  if (claimed.row !== undefined && claimed.row !== known.row) return "it is booked on another worker";
  for (const field of ["expectedOutputTokens", "statedPrefillTokens"] as const) {
    if (known[field] !== claimed[field]) {
      return `it is booked with ${field} ${known[field]}, and this is ${claimed[field]}`;
    }
  }
  return undefined;
}

function areEqual(a: BigUint64Array, b: BigUint64Array): boolean {
  return a.length === b.length && a.every((hash, index) => hash === b[index]);
}
