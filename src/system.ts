import type { Clock } from "./clock.js";

/** The clock of the runtime: what services use that were given none. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
};

/** Draws a number from 0 up to, but not including, 1. */
export const systemRandom = (): number => Math.random();

/** Makes an id that nobody else has: a UUID of version 4. */
export const systemId = (): string => crypto.randomUUID();
