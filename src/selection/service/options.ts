import type { Clock } from "../../clock.js";
import { describe } from "../../core/describe.js";
import { PrefixIndex } from "../../core/prefix-index.js";
import { OptionError } from "../../errors.js";
import { checkObject, checkWhole } from "../cache/checks.js";
import { SelectionCache } from "../cache.js";
import { positiveOption } from "../policies/numbers.js";
import type { Policy } from "../policy.js";
import { SessionTable } from "../sessions.js";
import type { WorkerCatalogOptions } from "../workers.js";
import type { BusyThresholds, Expired } from "./types.js";

export interface SelectionServiceOptions extends WorkerCatalogOptions {
  /** Default: the clock of the runtime. */
  readonly clock?: Pick<Clock, "now"> | undefined;
  /** Default: the randomness of the runtime. */
  readonly random?: (() => number) | undefined;
  /** Makes ids for `selectAndReserve` without one. Default: UUIDs. */
  readonly newId?: (() => string) | undefined;
  /** Default: `kv()`. */
  readonly policy?: Policy | undefined;
  /** What the workers hold. Default: an index of the service's own. */
  readonly index?: PrefixIndex | undefined;
  /**
   * Whether somebody else feeds the index, such as a `KvEventFeed`. Otherwise the service stores in it what it books, as the
   * worker will hold it soon. Default false.
   */
  readonly kvEvents?: boolean | undefined;
  readonly cache?: SelectionCache | undefined;
  readonly sessions?: SessionTable | undefined;
  /** How long a booking lives of which nothing is heard. Above 0, default 300,000. */
  readonly leaseMs?: number | undefined;
  /** Bookings that live at a time. 1 to 16,777,215, default 65,536. */
  readonly maxBookings?: number | undefined;
  /** Default of the requests that do not say. Default true. */
  readonly trackPrefillTokens?: boolean | undefined;
  /** From where on a worker is not chosen. Default: nowhere. */
  readonly busy?: BusyThresholds | undefined;
  /** Is told of each booking that ends without being freed. */
  readonly onExpired?: ((expired: Expired) => void) | undefined;
}

export const LEASE_MS_DEFAULT = 300_000;
export const BOOKINGS_DEFAULT = 65_536;
const BOOKINGS_MAX = 16_777_215;

/** Checks what can be wrong with the options but those of the catalog. */
export function checkServiceOptions(options: SelectionServiceOptions): void {
  checkObject(options, "the options");
  const { leaseMs, maxBookings, busy, index, cache, sessions } = options;
  checkKind("index", index, PrefixIndex, "a PrefixIndex");
  checkKind("cache", cache, SelectionCache, "a SelectionCache");
  checkKind("sessions", sessions, SessionTable, "a SessionTable");
  if (leaseMs !== undefined) positiveOption("leaseMs", leaseMs);
  if (maxBookings !== undefined) checkWhole(maxBookings, "maxBookings", 1, BOOKINGS_MAX);
  for (const [name, threshold] of Object.entries(busy ?? {})) {
    if (threshold === undefined || (typeof threshold === "number" && threshold >= 0)) continue;
    throw new OptionError(`Expected busy.${name} to be a number of at least 0, got ${threshold}.`);
  }
}

function checkKind(name: string, value: unknown, kind: abstract new () => unknown, what: string): void {
  if (value === undefined || value instanceof kind) return;
  throw new OptionError(`Expected ${name} to be ${what}, got ${describe(value)}.`);
}
