import { ERROR_CODES } from "../protocol.js";

/** Why a worker gives a request up: what the signal of its function is aborted with, and what the router is told. */
export class GivenUp extends Error {
  /** One of `ERROR_CODES`, or 0 where nobody is told, since the router itself has given the request up. */
  readonly code: number;

  constructor(reason: keyof typeof ERROR_CODES | "cancelled" | number, text: string) {
    super(text);
    this.name = "GivenUp";
    if (typeof reason === "number")
      this.code = reason || ERROR_CODES.failed; // 0 is nobody's to say but ours
    else this.code = reason === "cancelled" ? 0 : ERROR_CODES[reason];
  }

  get isCancelled(): boolean {
    return this.code === 0;
  }
}

/** Takes whatever a function threw as the reason to give its request up. */
export function asGivenUp(error: unknown): GivenUp {
  if (error instanceof GivenUp) return error;
  return new GivenUp("failed", textOf(error));
}

/** Puts whatever was thrown into words, even where it has none. */
export function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return `a value of type ${typeof error} that cannot be put into words`;
  }
}
