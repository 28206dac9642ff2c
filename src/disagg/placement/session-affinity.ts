import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import { checkRank, checkWhole } from "../checks.js";
import { checkRanks, checkRoom, duplicateRank, noWorkers, Ring, unknownRank } from "./ring.js";

export interface SessionAffinityOptions {
  /** Sessions that are remembered, 65,536 by default, 4,194,304 at most; beyond it the one goes that was least recently used. */
  readonly maxSessions?: number | undefined;
  /** How long after its last record a session is remembered. Without it, for ever; with it, every call needs the time. */
  readonly ttlMs?: number | undefined;
}

const SESSIONS = 65_536;
const SESSIONS_MAX = 2 ** 22;

/** UTF-16 units of the name of a session. */
const SESSION_LENGTH_MAX = 1_024;

interface Recorded {
  readonly rank: number;
  readonly recordedAtMs: number;
}

/** Chooses the worker that has served a session before, and any other in turn. */
export class SessionAffinity {
  /** Ranks that were added and not removed, with whether they are drained. */
  readonly #drained = new Map<number, boolean>();
  readonly #ring: Ring<number>;
  /** Least recently used first. */
  readonly #sessions = new Map<string, Recorded>();
  readonly #maxSessions: number;
  readonly #ttlMs: number | undefined;
  #ignoredRecords = 0;

  /** @throws {PlacementError} `KVROUTE_DUPLICATE_RANK`, `KVROUTE_TOO_MANY_RANKS` */
  constructor(ranks: readonly number[], options: SessionAffinityOptions = {}) {
    const { maxSessions = SESSIONS, ttlMs } = options;
    checkRanks(ranks);
    this.#maxSessions = checkWhole(maxSessions, "maxSessions", SESSIONS_MAX);
    if (ttlMs !== undefined) checkTtl(ttlMs);
    this.#ttlMs = ttlMs;
    for (const rank of ranks) this.#drained.set(rank, false);
    this.#ring = new Ring(ranks);
  }

  /** Sessions that are remembered; those that have expired count until they are asked for or pushed out. */
  get size(): number {
    return this.#sessions.size;
  }

  /** Records of ranks that are not known: ignored and counted, since a worker may be removed while it still answers. */
  get ignoredRecords(): number {
    return this.#ignoredRecords;
  }

  /**
   * Chooses the worker that a session was recorded for, the next in turn without a session, a record or while it is drained.
   *
   * @throws {PlacementError} `KVROUTE_NO_WORKERS` if none is at work
   */
  choose(session?: string, nowMs?: number): number {
    const now = this.#timeOf(nowMs);
    if (session !== undefined) checkSession(session);
    const recorded = session === undefined ? undefined : this.#find(session, now);
    if (recorded !== undefined) return recorded.rank;
    if (this.#ring.size === 0) throw noWorkers();
    const rank = this.#ring.at(0);
    this.#ring.advance(1);
    return rank;
  }

  /** Remembers that a worker has served a session; the last record of a session holds. */
  record(session: string, rank: number, nowMs?: number): void {
    const now = this.#timeOf(nowMs);
    checkSession(session);
    if (!this.#drained.has(checkRank(rank))) {
      this.#ignoredRecords++;
      return;
    }
    this.#sessions.delete(session);
    this.#sessions.set(session, { rank, recordedAtMs: now });
    if (this.#sessions.size > this.#maxSessions) this.#forgetLeastRecentlyUsed();
  }

  /** Forgets a session; one that is not remembered is ignored. */
  evict(session: string): void {
    checkSession(session);
    this.#sessions.delete(session);
  }

  /**
   * Adds a worker behind all others, or puts one back to work that was drained; its sessions come back with it.
   *
   * @throws {PlacementError} `KVROUTE_DUPLICATE_RANK` if it is at work, `KVROUTE_TOO_MANY_RANKS`
   */
  addWorker(rank: number): void {
    const drained = this.#drained.get(checkRank(rank));
    if (drained === false) throw duplicateRank(rank);
    if (drained === undefined) checkRoom(this.#drained.size + 1);
    this.#drained.set(rank, false);
    this.#ring.add(rank);
  }

  /**
   * Chooses a worker no more, but remembers its sessions until it is removed.
   *
   * @throws {PlacementError} `KVROUTE_UNKNOWN_RANK`
   */
  drainWorker(rank: number): void {
    if (!this.#drained.has(checkRank(rank))) throw unknownRank(rank);
    this.#ring.delete(rank);
    this.#drained.set(rank, true);
  }

  /** Chooses a worker no more, and forgets its sessions. A rank that is not known is ignored. */
  removeWorker(rank: number): void {
    if (!this.#drained.delete(checkRank(rank))) return;
    this.#ring.delete(rank);
    for (const [session, recorded] of this.#sessions) if (recorded.rank === rank) this.#sessions.delete(session);
  }

  #find(session: string, nowMs: number): Recorded | undefined {
    const recorded = this.#sessions.get(session);
    if (recorded === undefined) return undefined;
    this.#sessions.delete(session);
    if (this.#ttlMs !== undefined && nowMs - recorded.recordedAtMs > this.#ttlMs) return undefined;
    this.#sessions.set(session, recorded);
    return this.#drained.get(recorded.rank) ? undefined : recorded;
  }

  #forgetLeastRecentlyUsed(): void {
    for (const session of this.#sessions.keys()) {
      this.#sessions.delete(session);
      return;
    }
  }

  /** Checks the time. It may be left out where nothing expires. */
  #timeOf(nowMs: number | undefined): number {
    if (nowMs === undefined && this.#ttlMs === undefined) return 0;
    if (typeof nowMs === "number" && Number.isFinite(nowMs)) return nowMs;
    throw new ArgumentTypeError(`Expected nowMs to be a finite number, since sessions expire, got ${String(nowMs)}.`);
  }
}

function checkTtl(ttlMs: number): void {
  if (typeof ttlMs === "number" && ttlMs >= 0) return;
  throw new ArgumentRangeError(`Expected ttlMs to be 0 or more, got ${String(ttlMs)}.`);
}

export function checkSession(session: unknown): void {
  if (typeof session !== "string") {
    throw new ArgumentTypeError(`Expected a session to be a string, got a value of type ${typeof session}.`);
  }
  if (session.length <= SESSION_LENGTH_MAX) return;
  throw new ArgumentRangeError(
    `Expected a session of at most ${SESSION_LENGTH_MAX} characters, got ${session.length}.`,
  );
}
