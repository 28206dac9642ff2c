import {
  CorePanicError,
  DisposedError,
  ForeignReservationError,
  ReservationClosedError,
  ReservationExhaustedError,
} from "../errors.js";
import { DISPOSE } from "./dispose.js";

/** Room and pins that a pool holds for a request that has not taken ownership yet. */
export interface BlockReservation {
  /** Pinned blocks not yet activated, and fresh blocks not yet allocated. */
  readonly length: number;
  /** Fresh blocks not yet allocated. */
  readonly freshLength: number;
  /** Cancels what is left; does nothing the second time, and nothing once the pool is disposed of. */
  [Symbol.dispose](): void;
}

/** What a reservation asks of its pool. */
export interface ReservingPool {
  cancel(reservation: BlockReservation): void;
}

/** What the core calls the slots of pinned copies. They neither move nor get new contents while they are pinned. */
export type Pins = readonly number[];

/** What a reservation holds once its pins are activated. */
const NO_PINS: Pins = /* @__PURE__ */ Object.freeze([]);

/** The reservation as its pool sees it. Users see the two lengths. */
export class Reservation implements BlockReservation {
  #pool: ReservingPool;
  #pinned: Pins;
  #fresh: number;
  #closed = false;

  constructor(pool: ReservingPool, pinned: Pins, fresh: number) {
    this.#pool = pool;
    this.#pinned = pinned;
    this.#fresh = fresh;
  }

  get length(): number {
    return this.#pinned.length + this.#fresh;
  }

  get freshLength(): number {
    return this.#fresh;
  }

  [DISPOSE](): void {
    if (this.#closed) return;
    try {
      this.#pool.cancel(this);
    } catch (error) {
      // The pool has gone first and took the reservation with it: there is nothing left to give back.
      if (!(error instanceof DisposedError || error instanceof CorePanicError)) throw error;
    }
  }

  /** Gives the reservation that a caller passed, if `pool` made it and it is open. */
  static of(reservation: BlockReservation, pool: ReservingPool): Reservation {
    if (!(reservation instanceof Reservation) || reservation.#pool !== pool) throw new ForeignReservationError();
    if (reservation.#closed) throw new ReservationClosedError();
    return reservation;
  }

  /** The pinned slots, head to tail. */
  static pinned(reservation: Reservation): Pins {
    return reservation.#pinned;
  }

  /** Hands the pinned slots over; the reservation holds none afterwards. */
  static takePinned(reservation: Reservation): Pins {
    const pinned = reservation.#pinned;
    reservation.#pinned = NO_PINS;
    return pinned;
  }

  /** Checks that so many fresh blocks are left. */
  static checkFresh(reservation: Reservation, wanted: number): void {
    if (wanted > reservation.#fresh) throw new ReservationExhaustedError(reservation.#fresh, wanted);
  }

  /** Counts fresh blocks as allocated. */
  static useFresh(reservation: Reservation, count: number): void {
    reservation.#fresh -= count;
  }

  /** Ends the reservation. */
  static close(reservation: Reservation): void {
    reservation.#closed = true;
    reservation.#pinned = NO_PINS;
    reservation.#fresh = 0;
  }
}
