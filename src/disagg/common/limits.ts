import { checkWhole } from "../checks.js";

/** What a limit is without an option, and the least and the most that an option may say. */
export type Limit = readonly [fallback: number, least: number, most: number];

const MIB = 2 ** 20;

/** The longest delay that every runtime's timers take. */
const DELAY_MAX_MS = 2 ** 31 - 1;

const delay = (fallbackMs: number): Limit => [fallbackMs, 1, DELAY_MAX_MS];
const count = (fallback: number, least = 1): Limit => [fallback, least, MIB];

/** Bytes of a KV cache: as many as a transport carries in one envelope by default. */
const KV_BYTES: Limit = [64 * MIB, 1, Number.MAX_SAFE_INTEGER];

/** Limits of what nobody waits for, and of closing. */
const COMMON = {
  /** Messages on their way that nobody waits for, such as a Cancel. What is beyond is dropped and counted. */
  maxNotices: count(4_096),
  noticeTimeoutMs: delay(5_000),
  /** How long `close()` waits for what is under way. */
  closeTimeoutMs: delay(30_000),
} as const;

export const ROUTER_LIMITS = {
  ...COMMON,
  maxInFlight: count(1_024),
  maxPromptTokens: [MIB, 0, 2 ** 28],
  maxNewTokens: [65_536, 0, 2 ** 31],
  maxKvBytes: KV_BYTES,
  /** Messages of one request that came before others which were sent earlier. Beyond it the request fails. */
  maxReordered: count(1_024),
  prefillRetries: [1, 0, 1],
  prefillTimeoutMs: delay(60_000),
  firstTokenTimeoutMs: delay(60_000),
  tokenTimeoutMs: delay(30_000),
  requestTimeoutMs: delay(600_000),
} as const satisfies Record<string, Limit>;

const WORKER = {
  ...COMMON,
  /** Requests that wait for one of the places that `concurrency` gives. Beyond it a request is refused as busy. */
  maxWaiting: count(256, 0),
  /** Requests that have arrived in part. Beyond it a request is refused as busy. */
  maxPending: count(1_024),
  maxKvBytes: KV_BYTES,
  /** Requests that were given up, and of which nothing more is taken. */
  maxRemembered: count(4_096),
  /** How long one send waits for room. */
  sendTimeoutMs: delay(30_000),
} as const;

export const PREFILL_LIMITS = {
  ...WORKER,
  concurrency: count(1),
  maxPromptTokens: [MIB, 0, 2 ** 28],
  /** Bytes of all prompts that wait or are computed. Beyond it a request is refused as busy. */
  maxHeldBytes: [256 * MIB, 1, Number.MAX_SAFE_INTEGER],
  /** How long half a request waits for its other half. */
  pendingMs: delay(30_000),
  /** How long a decode worker may take to acknowledge a KV cache. */
  ackTimeoutMs: delay(30_000),
} as const satisfies Record<string, Limit>;

export const DECODE_LIMITS = {
  ...WORKER,
  concurrency: count(16),
  maxNewTokens: [65_536, 0, 2 ** 31],
  /** Bytes of all KV caches that are held, claimed or not. Beyond it a KV cache is refused as busy. */
  maxHeldBytes: [4_096 * MIB, 1, Number.MAX_SAFE_INTEGER],
  /** How long a KV cache waits for the router to claim it. */
  orphanKvMs: delay(30_000),
} as const satisfies Record<string, Limit>;

/** The limits of a table as options: all of them may be left out. */
export type LimitOptions<K extends string> = { readonly [name in K]?: number | undefined };

export type Limits<K extends string> = Readonly<Record<K, number>>;

/** Reads the limits of a table from options. */
export function readLimits<K extends string>(
  table: Readonly<Record<K, Limit>>,
  options: LimitOptions<NoInfer<K>>,
): Limits<K> {
  const limits = {} as Record<K, number>;
  for (const name of Object.keys(table) as K[]) {
    const [fallback, least, most] = table[name];
    limits[name] = options[name] === undefined ? fallback : checkWhole(options[name], name, most, least);
  }
  return limits;
}
