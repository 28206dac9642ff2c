import { PlacementError } from "../../errors.js";
import type { DisaggRouterOptions } from "../options.js";
import { duplicateRank, unknownRank } from "../placement/ring.js";
import { LeastLoaded, SessionAffinity } from "../placement.js";

export interface Pair {
  readonly prefillRank: number;
  readonly decodeRank: number;
}

/** The worker that has failed at a request, which is not to be chosen for it again. */
export type Failed = Partial<Pair>;

/** The load of a worker. */
export interface WorkerLoad {
  readonly rank: number;
  readonly role: "prefill" | "decode";
  readonly state: "at-work" | "draining" | "gone";
  /** Requests in its phase: prompts that are computed, or answers that are generated or about to be. */
  readonly inFlight: number;
}

interface Member {
  readonly rank: number;
  readonly role: "prefill" | "decode";
  state: "at-work" | "draining" | "gone";
  inFlight: number;
}

/** The workers of a router: who is chosen, and who has how much to do. */
export class Crew {
  readonly #prefill: LeastLoaded;
  readonly #decode: SessionAffinity;
  readonly #members = new Map<number, Member>();
  readonly #listeners = new Set<() => void>();

  constructor(options: DisaggRouterOptions) {
    const { prefillWorkers, decodeWorkers, tieBreak, maxSessions, sessionTtlMs: ttlMs } = options;
    this.#prefill = new LeastLoaded(prefillWorkers, { tieBreak });
    this.#decode = new SessionAffinity(decodeWorkers, { maxSessions, ttlMs });
    for (const rank of prefillWorkers) this.#enlist(rank, "prefill");
    for (const rank of decodeWorkers) this.#enlist(rank, "decode");
  }

  get sessions(): number {
    return this.#decode.size;
  }

  /** Whether there are two workers to choose, without the one that failed. */
  canServe(except: Failed = {}): boolean {
    return this.#has("prefill", except.prefillRank) && this.#has("decode", except.decodeRank);
  }

  /**
   * Chooses two workers, and books the request with both.
   *
   * @throws {PlacementError} `KVROUTE_NO_WORKERS`; nothing is booked, and nobody's turn is taken
   */
  choose(session: string | undefined, nowMs: number, except: Failed = {}): Pair {
    for (const role of ["prefill", "decode"] as const) {
      if (this.#has(role, except[`${role}Rank`])) continue;
      throw new PlacementError("KVROUTE_NO_WORKERS", `Expected a ${role} worker at work, but there is none.`);
    }
    let decodeRank = this.#decode.choose(session, nowMs);
    while (decodeRank === except.decodeRank) decodeRank = this.#decode.choose(undefined, nowMs); // twice at most
    const prefillRank = this.#prefill.choose(except.prefillRank);
    this.#book(prefillRank);
    this.#book(decodeRank);
    return { prefillRank, decodeRank };
  }

  releasePrefill(rank: number): void {
    this.#prefill.release(rank);
    this.#release(rank);
  }

  releaseDecode(rank: number): void {
    this.#release(rank);
  }

  /** Remembers who has answered a session. */
  record(session: string, rank: number, nowMs: number): void {
    this.#decode.record(session, rank, nowMs);
  }

  evict(session: string): void {
    this.#decode.evict(session);
  }

  /** Adds a worker, or puts one back to work that was drained, removed or lost. */
  add(rank: number, role: "prefill" | "decode"): void {
    const known = this.#members.get(rank);
    if (known !== undefined && known.role !== role) throw duplicateRank(rank);
    if (role === "prefill") this.#prefill.addWorker(rank);
    else this.#decode.addWorker(rank);
    this.#enlist(rank, role);
  }

  /** Chooses a worker no more, and lets it finish what it has. */
  drain(rank: number): void {
    const member = this.#known(rank);
    if (member.role === "prefill") this.#prefill.drainWorker(rank);
    else this.#decode.drainWorker(rank);
    member.state = "draining";
  }

  /** Chooses a worker no more, and forgets its sessions; `false` if it was not there. */
  remove(rank: number): boolean {
    const member = this.#members.get(rank);
    if (member === undefined || member.state === "gone") return false;
    if (member.role === "prefill") this.#prefill.removeWorker(rank);
    else this.#decode.removeWorker(rank);
    member.state = "gone";
    this.#forgetIfGone(member);
    return true;
  }

  inFlight(rank: number): number {
    return this.#members.get(rank)?.inFlight ?? 0;
  }

  loads(): WorkerLoad[] {
    return Array.from(this.#members.values(), (member) => ({ ...member }));
  }

  /** Calls `listener` whenever a request leaves a worker. Returns what takes it off again. */
  onRelease(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #has(role: "prefill" | "decode", except?: number): boolean {
    for (const member of this.#members.values()) {
      if (member.role === role && member.state === "at-work" && member.rank !== except) return true;
    }
    return false;
  }

  #enlist(rank: number, role: "prefill" | "decode"): void {
    const known = this.#members.get(rank);
    if (known === undefined) this.#members.set(rank, { rank, role, state: "at-work", inFlight: 0 });
    else if (known.role === role) known.state = "at-work";
    else throw duplicateRank(rank);
  }

  #known(rank: number): Member {
    const member = this.#members.get(rank);
    if (member === undefined || member.state === "gone") throw unknownRank(rank);
    return member;
  }

  #book(rank: number): void {
    const member = this.#members.get(rank);
    if (member !== undefined) member.inFlight++;
  }

  #release(rank: number): void {
    const member = this.#members.get(rank);
    if (member === undefined) return;
    member.inFlight--;
    this.#forgetIfGone(member);
    for (const listener of this.#listeners) listener();
  }

  #forgetIfGone(member: Member): void {
    if (member.state === "gone" && member.inFlight === 0) this.#members.delete(member.rank);
  }
}
