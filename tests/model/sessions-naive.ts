import type { WorkerWithDpRank } from "../../src/core/keys.js";

interface Use {
  readonly tenant: string;
  readonly session: string;
  readonly worker: WorkerWithDpRank;
  readonly atMs: number;
}

/** The session table as a list of uses, the latest last, gone through for every question. */
export class NaiveSessions {
  evicted = 0;
  expired = 0;
  #uses: Use[] = [];
  #nowMs = Number.NEGATIVE_INFINITY;

  constructor(
    readonly maxSessions: number,
    readonly idleMs: number,
  ) {}

  get size(): number {
    return this.#uses.length;
  }

  find(tenant: string, session: string, nowMs: number): WorkerWithDpRank | undefined {
    this.#advance(nowMs);
    return this.#uses.find((use) => use.tenant === tenant && use.session === session)?.worker;
  }

  record(tenant: string, session: string, worker: WorkerWithDpRank, nowMs: number): boolean {
    this.#advance(nowMs);
    if (session === "" || session.length > 256 || tenant.length > 256) return false;
    this.#uses = this.#uses.filter((use) => use.tenant !== tenant || use.session !== session);
    this.#uses.push({ tenant, session, worker, atMs: this.#nowMs });
    if (this.#uses.length > this.maxSessions) {
      this.#uses.shift();
      this.evicted++;
    }
    return true;
  }

  forget(tenant: string, session: string): boolean {
    const before = this.#uses.length;
    this.#uses = this.#uses.filter((use) => use.tenant !== tenant || use.session !== session);
    return this.#uses.length < before;
  }

  removeWorker(workerId: number): void {
    this.#uses = this.#uses.filter(({ worker }) => worker.workerId !== workerId);
  }

  removeRank({ workerId, dpRank }: WorkerWithDpRank): void {
    this.#uses = this.#uses.filter(({ worker }) => worker.workerId !== workerId || worker.dpRank !== dpRank);
  }

  #advance(nowMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, nowMs);
    const kept = this.#uses.filter(({ atMs }) => this.#nowMs - atMs <= this.idleMs);
    this.expired += this.#uses.length - kept.length;
    this.#uses = kept;
  }
}
