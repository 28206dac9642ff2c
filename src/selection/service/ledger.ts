import type { PrefixIndex } from "../../core/prefix-index.js";
import { BookingConflictError } from "../../errors.js";
import type { WorkerRow } from "../workers.js";
import { type BookingInputs, BookingTable, type ClaimedInputs, differenceOf, LiveBooking } from "./bookings.js";
import type { Booking, BookingEnd, Expired } from "./types.js";

/** What a ledger is made with. */
export interface LedgerParts {
  readonly index: PrefixIndex;
  /** Whether somebody else tells the index what workers hold. */
  readonly kvEvents: boolean;
  readonly leaseMs: number;
  readonly maxBookings: number;
  readonly onExpired: ((expired: Expired) => void) | undefined;
}

/** Books requests and ends their bookings: the one place where load is taken and given back. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #bookings: BookingTable;
  /** Has ended, and nobody has been told yet. */
  #untold: Expired[] = [];
  #expired = 0;
  #lost = 0;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#bookings = new BookingTable(parts.maxBookings);
  }

  get size(): number {
    return this.#bookings.size;
  }

  /** Counts the bookings that ended with their lease, and those that ended with their worker. */
  get ended(): { readonly expired: number; readonly lost: number } {
    return { expired: this.#expired, lost: this.#lost };
  }

  find(selectionId: string): LiveBooking | undefined {
    return this.#bookings.find(selectionId);
  }

  /**
   * Books a request under an id that is free, or throws and books nothing.
   *
   * @throws {SelectionLimitError} `KVROUTE_BOOKINGS_FULL` if there are as many as there may be; whatever the tables in the core throw where they are full
   */
  book(selectionId: string, inputs: BookingInputs, nowMs: number): Booking {
    this.#bookings.checkRoom();
    const { partition, row, sequenceHashes, effectivePrefillTokens, overlapBlocks } = inputs;
    const request = {
      sequenceHashes,
      missedTokens: effectivePrefillTokens,
      missedBlocks: sequenceHashes.length - overlapBlocks,
      trackPrefill: inputs.trackPrefillTokens,
    };
    const load = partition.load.book(row.load, request, nowMs);
    try {
      if (!this.#parts.kvEvents) this.#parts.index.store(row.worker, sequenceHashes, { nowMs });
    } catch (error) {
      partition.load.release(load, nowMs); // the index has changed nothing
      throw error;
    }
    const booking = new LiveBooking(selectionId, inputs, load);
    this.#bookings.add(booking, nowMs);
    return booking.view(false, this.#parts.leaseMs);
  }

  /**
   * Gives the booking that an id has already to a caller who says the same again.
   *
   * @throws {BookingConflictError} `KVROUTE_BOOKING_CONFLICT` if it says something else
   */
  again(known: LiveBooking, claimed: ClaimedInputs, nowMs: number): Booking {
    const difference = differenceOf(known.inputs, claimed);
    if (difference !== undefined) throw new BookingConflictError(known.id, difference);
    this.#bookings.renew(known, nowMs);
    return known.view(true, this.#parts.leaseMs);
  }

  /**
   * Renews the lease of a booking.
   *
   * @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id
   */
  renew(selectionId: string, nowMs: number): LiveBooking {
    const booking = this.#bookings.get(selectionId);
    this.#bookings.renew(booking, nowMs);
    return booking;
  }

  /** Ends a booking and gives back all that it holds. */
  end(booking: LiveBooking, nowMs: number): void {
    this.#bookings.delete(booking);
    booking.inputs.partition.load.release(booking.load, nowMs);
  }

  /** Ends bookings whose leases have run out, at most so many, the oldest first, and lists them. */
  expire(nowMs: number, most: number): Expired[] {
    const ended: Expired[] = [];
    let { oldest } = this.#bookings;
    while (oldest !== null && ended.length < most && nowMs - oldest.insertedAtMs > this.#parts.leaseMs) {
      this.#expired++;
      ended.push(this.#lose(oldest, "lease-expired", nowMs));
      ({ oldest } = this.#bookings);
    }
    this.tell();
    return ended;
  }

  /** Ends all bookings on ranks that have gone. `tell` says so, when the catalog has done with them. */
  forget(rows: readonly WorkerRow[]): void {
    for (const booking of this.#bookings.on(rows)) {
      this.#lost++;
      this.#lose(booking, "worker-removed", booking.insertedAtMs); // nobody asks how fast the rank was
    }
  }

  /**
   * Tells of all bookings that have ended since the last time. Whoever is told may call the service again; what it throws is
   * reported as uncaught, and hinders neither the others nor the call that came upon the end.
   */
  tell(): void {
    const { onExpired } = this.#parts;
    const untold = this.#untold;
    this.#untold = [];
    if (onExpired === undefined) return;
    for (const ended of untold) {
      try {
        onExpired(ended);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #lose(booking: LiveBooking, reason: BookingEnd, nowMs: number): Expired {
    this.end(booking, nowMs);
    const ended = { selectionId: booking.id, worker: booking.inputs.row.worker, reason };
    this.#untold.push(ended);
    return ended;
  }
}
