import type { WorkerId, WorkerWithDpRank } from "../core/keys.js";
import { checkRank, type WorkerKey, workerKey } from "../core/worker-key.js";
import { type Aged, AgeOrder, NOT_LATE } from "./cache/age-order.js";
import { checkText, checkTime } from "./cache/checks.js";
import { type Identified, IdTable } from "./cache/id-table.js";
import { isSameWorker } from "./policies/choose.js";
import { countOption, positiveOption } from "./policies/numbers.js";

export interface SessionTableOptions {
  /** How many sessions are kept; beyond, the one used longest ago goes. 1 to 16,777,215, default 100,000. */
  readonly maxSessions?: number | undefined;
  /** How long a session that nobody uses is kept, in milliseconds. Above 0, default one hour. */
  readonly idleMs?: number | undefined;
}

export const SESSIONS_DEFAULT = 100_000;
export const SESSIONS_MAX = 16_777_215;
export const SESSION_IDLE_MS_DEFAULT = 3_600_000;
/** A longer id names no session: a wrong one would be worse than none. */
export const SESSION_ID_LENGTH_MAX = 256;

/** A session. Its age is the time of its last use. */
class Session implements Aged<Session>, Identified<Session> {
  insertedAtMs = 0;
  generation = 0;
  older: Session | null = null;
  newer: Session | null = null;
  lateIndex = NOT_LATE;
  idHash = 0;
  chained: Session | null = null;

  constructor(
    readonly id: string,
    readonly worker: WorkerWithDpRank,
  ) {}
}

/**
 * Remembers which worker served a session last. A session is named by its tenant as well, since ids that clients choose
 * may coincide. What a removed worker served is forgotten with it.
 */
export class SessionTable {
  readonly #maxSessions: number;
  readonly #idleMs: number;
  readonly #sessions = new IdTable<Session>();
  readonly #byUse = new AgeOrder<Session>();
  #uses = 0;
  readonly #byWorker = new Map<WorkerKey, Set<Session>>();
  #nowMs = Number.NEGATIVE_INFINITY;
  #evicted = 0;
  #expired = 0;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option is out of range */
  constructor(options: SessionTableOptions = {}) {
    const { maxSessions = SESSIONS_DEFAULT, idleMs = SESSION_IDLE_MS_DEFAULT } = options;
    this.#maxSessions = countOption("maxSessions", maxSessions, 1, SESSIONS_MAX);
    this.#idleMs = positiveOption("idleMs", idleMs);
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Counts the sessions that went by themselves: for want of room, or because nobody used them. */
  get stats(): { readonly evicted: number; readonly expired: number } {
    return { evicted: this.#evicted, expired: this.#expired };
  }

  /** Finds the worker that served a session last, and leaves its age as it is. */
  find(tenant: string, session: string, nowMs: number): WorkerWithDpRank | undefined {
    checkNames(tenant, session);
    checkTime(nowMs, "nowMs");
    this.#expire(nowMs);
    return this.#sessions.get(sessionKey(tenant, session))?.worker;
  }

  /** Says that a worker has served a session. An id that is empty or too long is passed over. Returns whether it was kept. */
  record(tenant: string, session: string, worker: WorkerWithDpRank, nowMs: number): boolean {
    checkNames(tenant, session);
    checkTime(nowMs, "nowMs");
    const home = workerKey(worker.workerId);
    checkRank(worker.dpRank);
    this.#expire(nowMs);
    if (!isSession(tenant, session)) return false;
    const key = sessionKey(tenant, session);
    const known = this.#sessions.get(key);
    if (known !== undefined && isSameWorker(known.worker, worker)) {
      this.#byUse.delete(known);
      this.#use(known);
      return true;
    }
    if (known !== undefined) this.#drop(known);
    const { workerId, dpRank } = worker;
    const entry = new Session(key, { workerId, dpRank });
    this.#sessions.put(entry);
    this.#use(entry);
    const neighbours = this.#byWorker.get(home);
    if (neighbours === undefined) this.#byWorker.set(home, new Set([entry]));
    else neighbours.add(entry);
    if (this.#sessions.size > this.#maxSessions) {
      this.#drop(this.#byUse.oldest as Session); // there is one: the limit is 1 or more
      this.#evicted++;
    }
    return true;
  }

  /** Forgets a session. Returns whether it was known. */
  forget(tenant: string, session: string): boolean {
    checkNames(tenant, session);
    const known = this.#sessions.get(sessionKey(tenant, session));
    if (known !== undefined) this.#drop(known);
    return known !== undefined;
  }

  /** Forgets all that a worker served. */
  removeWorker(workerId: WorkerId): void {
    for (const session of this.#byWorker.get(workerKey(workerId)) ?? []) this.#drop(session);
  }

  /** Forgets all that one rank of a worker served. */
  removeRank({ workerId, dpRank }: WorkerWithDpRank): void {
    for (const session of this.#byWorker.get(workerKey(workerId)) ?? []) {
      if (session.worker.dpRank === dpRank) this.#drop(session);
    }
  }

  // Each use puts a session at the end, so that the oldest stand in front: for that, time stands still while the clock is
  // set back. Each that goes came once: no call is long but after a time when nobody called.
  #expire(nowMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, nowMs);
    for (let oldest = this.#byUse.oldest; oldest !== null; oldest = this.#byUse.oldest) {
      if (this.#nowMs - oldest.insertedAtMs <= this.#idleMs) return;
      this.#drop(oldest);
      this.#expired++;
    }
  }

  /** Makes a session the one that was used last. */
  #use(session: Session): void {
    session.insertedAtMs = this.#nowMs;
    session.generation = ++this.#uses;
    this.#byUse.add(session);
  }

  #drop(session: Session): void {
    this.#sessions.delete(session);
    this.#byUse.delete(session);
    const home = workerKey(session.worker.workerId);
    const neighbours = this.#byWorker.get(home);
    neighbours?.delete(session);
    if (neighbours?.size === 0) this.#byWorker.delete(home);
  }
}

/** What names a session: without one, there is no tenant either. */
export interface SessionName {
  readonly session?: string | undefined;
  readonly tenant: string;
}

/**
 * Reads which session a request names. An id that is empty or too long names none.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if session or tenant are not texts
 */
export function sessionNamed(
  request: { readonly [name in keyof SessionName]?: SessionName[name] | undefined },
): SessionName {
  const { session, tenant = "" } = request;
  if (session === undefined) return { tenant: "" };
  checkNames(tenant, session);
  return isSession(tenant, session) ? { session, tenant } : { tenant: "" };
}

function checkNames(tenant: string, session: string): void {
  checkText(tenant, "tenant");
  checkText(session, "session");
}

function isSession(tenant: string, session: string): boolean {
  return session.length > 0 && session.length <= SESSION_ID_LENGTH_MAX && tenant.length <= SESSION_ID_LENGTH_MAX;
}

/** Makes one text of both: the length tells where the tenant ends. */
export function sessionKey(tenant: string, session: string): string {
  return `${tenant.length}:${tenant}${session}`;
}
