import { UnknownBookingError } from "../errors.js";
import type { SelectionService } from "../selection/service.js";

/** A booking of the gateway's. It may end behind its back, with its worker or its lease: what is said of it then is dropped. */
export class Booking {
  readonly #service: SelectionService;
  readonly #id: string;

  constructor(service: SelectionService, id: string) {
    this.#service = service;
    this.#id = id;
  }

  prefillComplete(): void {
    try {
      this.#service.prefillComplete(this.#id);
    } catch (error) {
      passOver(error);
    }
  }

  outputBlock(): void {
    try {
      this.#service.outputBlock(this.#id);
    } catch (error) {
      passOver(error);
    }
  }

  touch(): void {
    try {
      this.#service.touch(this.#id);
    } catch (error) {
      passOver(error);
    }
  }

  reportCachedTokens(tokens: number): void {
    try {
      this.#service.reportCachedTokens(this.#id, tokens);
    } catch (error) {
      passOver(error);
    }
  }

  free(): void {
    this.#service.free(this.#id);
  }
}

function passOver(error: unknown): void {
  if (!(error instanceof UnknownBookingError)) throw error;
}
