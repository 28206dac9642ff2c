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
    this.#say(() => this.#service.prefillComplete(this.#id));
  }

  outputBlock(): void {
    this.#say(() => this.#service.outputBlock(this.#id));
  }

  touch(): void {
    this.#say(() => this.#service.touch(this.#id));
  }

  reportCachedTokens(tokens: number): void {
    this.#say(() => this.#service.reportCachedTokens(this.#id, tokens));
  }

  free(): void {
    this.#service.free(this.#id);
  }

  #say(call: () => void): void {
    try {
      call();
    } catch (error) {
      if (!(error instanceof UnknownBookingError)) throw error;
    }
  }
}
