import { checkWhole } from "./checks.js";

/** What a transport holds back, and what it refuses. A way leads from one rank to another. */
export interface TransportLimits {
  /** Envelopes of one way that were sent and not taken yet, 256 by default; beyond it `send` waits. */
  readonly windowEnvelopes?: number | undefined;
  /** Bytes of one way that were sent and not taken yet, 64 MiB by default. An envelope that is larger goes alone. */
  readonly windowBytes?: number | undefined;
  /** Bytes of one envelope, 64 MiB by default; beyond it `send` refuses. */
  readonly maxEnvelopeBytes?: number | undefined;
  /** Sends that wait on one way, 16,384 by default; beyond it `send` refuses. */
  readonly maxWaiting?: number | undefined;
  /** Ranks that are connected at the same time, 1,024 by default. */
  readonly maxRanks?: number | undefined;
}

export type Limits = { readonly [K in keyof TransportLimits]-?: number };

const DEFAULTS: Limits = {
  windowEnvelopes: 256,
  windowBytes: 64 * 2 ** 20,
  maxEnvelopeBytes: 64 * 2 ** 20,
  maxWaiting: 16_384,
  maxRanks: 1_024,
};

/** What can be asked for. Bytes end where an ArrayBuffer of any runtime does; the rest keeps a hub's tables small. */
export const MOST: Limits = {
  windowEnvelopes: 65_536,
  windowBytes: 2 ** 31 - 1,
  maxEnvelopeBytes: 2 ** 31 - 1,
  maxWaiting: 2 ** 20,
  maxRanks: 65_536,
};

/** Fills limits up with their defaults and checks them. `maxWaiting` may be 0, everything else is 1 or more. */
export function limitsOf(options: TransportLimits): Limits {
  const limits: Record<keyof Limits, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof Limits)[]) {
    const least = name === "maxWaiting" ? 0 : 1;
    limits[name] = checkWhole(options[name] ?? DEFAULTS[name], name, least, MOST[name]);
  }
  return limits;
}
