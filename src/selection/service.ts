import type { WorkerId } from "../core/keys.js";
import { PrefixIndex } from "../core/prefix-index.js";
import { ArgumentRangeError, NoWorkerError } from "../errors.js";
import { systemClock, systemId, systemRandom } from "../system.js";
import { checkNumber, checkObject, checkTime, checkWhole } from "./cache/checks.js";
import type { RoutingPartition } from "./cache/types.js";
import { SelectionCache } from "./cache.js";
import { checkName } from "./catalog/registration.js";
import { kv, type Policy } from "./policy.js";
import { activeLoadOf, bookedSelectionOf, selectionAgain, selectionOf } from "./service/answers.js";
import type { LiveBooking } from "./service/bookings.js";
import { blockSizeOf, Decider, type Decision, potentialBlocksOf, prefillTokensOf } from "./service/decide.js";
import { LearntSizes } from "./service/learnt-size.js";
import { Ledger } from "./service/ledger.js";
import {
  BOOKINGS_DEFAULT,
  checkServiceOptions,
  LEASE_MS_DEFAULT,
  type SelectionServiceOptions,
} from "./service/options.js";
import { resolvePrompt } from "./service/prompt.js";
import { checkOutputTokens, inputsOf, type KeptSelection, namesOf, Reserver } from "./service/reserve.js";
import type {
  ActiveLoad,
  Booking,
  BusyThresholds,
  Expired,
  OverlapScore,
  PartitionRequest,
  PotentialLoad,
  Prompt,
  ReserveRequest,
  Selection,
  SelectionStats,
  SelectRequest,
} from "./service/types.js";
import { SessionTable, sessionNamed } from "./sessions.js";
import { type Partition, WorkerCatalog, type WorkerRow } from "./workers.js";

export type * from "./service/types.js";
export type { SelectionServiceOptions };

/** Bookings that one call ends at most because their leases ran out: what is left waits for the next. */
const EXPIRED_PER_CALL = 64;

/** Names a partition and a prompt. */
export type PromptRequest = Prompt & PartitionRequest;

/**
 * Says which worker is best for a request, books it there, and follows the booking until it ends. Everything is synchronous.
 * A booking is a lease: whatever is heard of it renews it, and one of which nothing is heard ends by itself. Each call also
 * ends a bounded number of bookings whose leases have run out.
 */
export class SelectionService {
  readonly workers: WorkerCatalog;
  readonly #now: () => number;
  readonly #newId: () => string;
  readonly #policy: Policy;
  readonly #index: PrefixIndex;
  readonly #cache: SelectionCache;
  readonly #sessions: SessionTable;
  readonly #decider: Decider;
  readonly #reserver: Reserver;
  readonly #ledger: Ledger;
  readonly #sizes: LearntSizes;
  readonly #trackPrefillTokens: boolean;
  readonly #busy: BusyThresholds;

  /**
   * Makes a service without workers.
   *
   * @throws {OptionError} `KVROUTE_OPTION`, {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a number is out of range
   */
  constructor(options: SelectionServiceOptions = {}) {
    checkServiceOptions(options);
    const { clock = systemClock, random = systemRandom, busy = {}, kvEvents = false, onExpired } = options;
    const { trackPrefillTokens = true, leaseMs = LEASE_MS_DEFAULT, maxBookings = BOOKINGS_DEFAULT } = options;
    this.#now = () => {
      const nowMs = clock.now();
      checkTime(nowMs, "clock.now()"); // a time that is no number would spoil the order of the leases
      return nowMs;
    };
    this.#newId = options.newId ?? systemId;
    this.#policy = options.policy ?? kv();
    this.#cache = options.cache ?? new SelectionCache();
    this.#sessions = options.sessions ?? new SessionTable();
    this.#trackPrefillTokens = trackPrefillTokens;
    this.#busy = busy;
    const index = options.index ?? new PrefixIndex();
    this.#index = index;
    this.#sizes = new LearntSizes(index, !kvEvents);
    this.#decider = new Decider({ policy: this.#policy, index, sessions: this.#sessions, random, busy });
    this.#ledger = new Ledger({ index, kvEvents, leaseMs, maxBookings, onExpired });
    this.workers = new WorkerCatalog(options, {
      onRankSettled: (row) => this.#sizes.settle(row),
      onRanksGone: (rows) => this.#forgetRanks(rows),
      onWorkerGone: (workerId, rows) => this.#forgetWorker(workerId, rows),
      onChanged: () => this.#ledger.tell(),
    });
    const { workers } = this;
    const decider = this.#decider;
    const ledger = this.#ledger;
    this.#reserver = new Reserver({ workers, cache: this.#cache, decider, ledger, trackPrefillTokens });
  }

  /**
   * Chooses a worker and books nothing. With a `selectionId` the selection can be booked by `reserve` for a while; a newer
   * one takes the place of an older one.
   *
   * @throws {NoWorkerError} `KVROUTE_NO_WORKER` if no worker may serve the request
   * @throws {WorkersBusyError} `KVROUTE_WORKERS_BUSY` if all that may are busy
   */
  select(request: SelectRequest): Selection {
    const nowMs = this.#pass(request);
    const { selectionId } = request;
    if (selectionId !== undefined) checkName(selectionId, "selectionId");
    const decision = this.#decide(request, nowMs);
    if (selectionId !== undefined) this.#cache.insert(selectionId, this.#keptOf(request, decision), nowMs);
    return selectionOf(request, decision, this.#busy);
  }

  /**
   * Books what was selected under an id, or, with a `workerId`, what the request says. The same again is the same booking.
   * Where it fails nothing is booked, and the selection stays to be tried again.
   *
   * @throws {UnknownSelectionError} `KVROUTE_UNKNOWN_SELECTION` if nothing is selected under the id
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if the worker has gone or cannot be chosen
   * @throws {BookingConflictError} `KVROUTE_BOOKING_CONFLICT` if the id is booked for something else
   * @throws {SelectionLimitError} `KVROUTE_BOOKINGS_FULL` if there are as many bookings as there may be
   */
  reserve(request: ReserveRequest): Booking {
    const nowMs = this.#pass(request);
    checkName(request.selectionId, "selectionId");
    const { workerId } = request;
    return workerId === undefined
      ? this.#reserver.reserveSelected(request, nowMs)
      : this.#reserver.reserveStated(request, { workerId, dpRank: request.dpRank ?? 0 }, nowMs);
  }

  /** Chooses a worker and books it in one. Without a `selectionId` it makes one. The errors are those of both. */
  selectAndReserve(request: SelectRequest): Selection & Booking {
    const nowMs = this.#pass(request);
    const selectionId = request.selectionId ?? this.#newId();
    checkName(selectionId, "selectionId");
    const known = this.#ledger.find(selectionId);
    if (known !== undefined) return this.#selectAgain(request, known, nowMs);
    const decision = this.#decide(request, nowMs);
    const booking = this.#ledger.book(selectionId, inputsOf(this.#keptOf(request, decision), decision.row), nowMs);
    this.#cache.discard(namesOf(request), selectionId);
    return bookedSelectionOf(selectionOf(request, decision, this.#busy), booking);
  }

  /**
   * Says that the first token of a booking has come: its prefill is no load any more, and its session stays with the worker.
   *
   * @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id
   */
  prefillComplete(selectionId: string): void {
    const nowMs = this.#pass();
    const booking = this.#ledger.renew(selectionId, nowMs);
    const { partition, row, session, tenant } = booking.inputs;
    partition.load.endPrefill(booking.load, nowMs);
    if (booking.hasAnswered) return; // its session may have moved on
    booking.hasAnswered = true;
    if (session !== undefined) this.#sessions.record(tenant, session, row.worker, nowMs);
  }

  /**
   * Says that a booking has put out one block more.
   *
   * @param decay what its blocks that no other shares count from now on, 0 to 1; by default they stay as they are
   * @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id
   */
  outputBlock(selectionId: string, decay?: number): void {
    const nowMs = this.#pass();
    if (decay !== undefined) {
      checkNumber(decay, "decay");
      if (!(decay >= 0 && decay <= 1)) throw new ArgumentRangeError(`Expected decay to be from 0 to 1, got ${decay}.`);
    }
    const booking = this.#ledger.renew(selectionId, nowMs);
    booking.inputs.partition.load.addOutputBlock(booking.load, decay);
  }

  /**
   * Renews the lease of a booking.
   *
   * @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id
   */
  touch(selectionId: string): void {
    this.#ledger.renew(selectionId, this.#pass());
  }

  /** Ends a booking, and its prefill with it. Returns whether there was one: freeing twice is freeing once. */
  free(selectionId: string): boolean {
    const nowMs = this.#pass();
    const booking = this.#ledger.find(selectionId);
    if (booking !== undefined) this.#ledger.end(booking, nowMs);
    return booking !== undefined;
  }

  /** Ends all bookings whose leases have run out, and lists them. */
  expire(): Expired[] {
    return this.#ledger.expire(this.#now(), Number.POSITIVE_INFINITY);
  }

  /**
   * Says how many tokens of its prompt the engine found cached for a booking. From it the service learns how many blocks the
   * worker keeps, unless KV events tell. Of each booking the first report counts: some engines repeat it with every chunk.
   *
   * @throws {UnknownBookingError} `KVROUTE_UNKNOWN_BOOKING` if nothing is booked under the id
   */
  reportCachedTokens(selectionId: string, cachedTokens: number): void {
    const nowMs = this.#pass();
    checkWhole(cachedTokens, "cachedTokens", 0, Number.MAX_SAFE_INTEGER);
    const booking = this.#ledger.renew(selectionId, nowMs);
    if (booking.hasReported) return;
    booking.hasReported = true;
    const { inputs } = booking;
    this.#sizes.report(inputs.row, inputs.overlapBlocks, cachedTokens, blockSizeOf(inputs.partition));
  }

  /** Says what each worker that can be chosen would have to do if it took a prompt, in the order of registration. */
  potentialLoads(request: PromptRequest): PotentialLoad[] {
    const nowMs = this.#pass(request);
    const partition = this.#partitionOf(request);
    const blockSize = blockSizeOf(partition);
    const prompt = resolvePrompt(request, blockSize);
    this.#decider.consider(partition, prompt, nowMs);
    return partition.schedulable.map((row) => ({
      worker: row.worker,
      potentialPrefillTokens:
        row.load.activePrefillTokens + prefillTokensOf(prompt.promptTokens, row.overlapBlocks, blockSize),
      potentialDecodeBlocks: potentialBlocksOf(row, prompt),
      activeRequests: row.load.activeRequests,
    }));
  }

  /** Says how much of a prompt each worker holds that holds any of it, in the order of registration. */
  overlapScores(request: PromptRequest): OverlapScore[] {
    const nowMs = this.#pass(request);
    const partition = this.#partitionOf(request);
    this.#decider.consider(partition, resolvePrompt(request, blockSizeOf(partition)), nowMs);
    return partition.schedulable
      .filter(({ overlapBlocks }) => overlapBlocks > 0)
      .map(({ worker, overlapBlocks }) => ({ worker, overlapBlocks }));
  }

  /** Says what is booked on each worker, draining ones included, of a partition or of all. */
  loads(filter: PartitionRequest = {}): (RoutingPartition & { readonly loads: ActiveLoad[] })[] {
    this.#pass(filter);
    return [...this.workers.partitions()]
      .filter(({ modelName }) => filter.modelName === undefined || filter.modelName === modelName)
      .filter(({ routingGroup }) => filter.routingGroup === undefined || filter.routingGroup === routingGroup)
      .map(({ modelName, routingGroup, entries }) => {
        const rows = [...entries].flatMap((entry) => entry.rows);
        return { modelName, routingGroup, loads: rows.map(activeLoadOf) };
      });
  }

  stats(): SelectionStats {
    let schedulableRanks = 0;
    for (const { schedulable } of this.workers.partitions()) schedulableRanks += schedulable.length;
    return {
      workers: this.workers.size,
      schedulableRanks,
      bookings: this.#ledger.size,
      pendingSelections: this.#cache.size,
      sessions: this.#sessions.size,
      index: this.#index.size,
      expiredBookings: this.#ledger.ended.expired,
      lostBookings: this.#ledger.ended.lost,
      dropped: { selections: this.#cache.stats, sessions: this.#sessions.stats, indexEntries: this.#index.stats },
      prediction: this.#sizes.stats,
    };
  }

  /** Begins a call: what it was given is an object, time passes, and some of what has expired goes. */
  #pass(request?: unknown): number {
    if (request !== undefined) checkObject(request, "the request");
    const nowMs = this.#now();
    this.#ledger.expire(nowMs, EXPIRED_PER_CALL);
    return nowMs;
  }

  #decide(request: SelectRequest, nowMs: number): Decision {
    checkOutputTokens(request.expectedOutputTokens);
    return this.#decider.decide(request, this.#partitionOf(request), nowMs);
  }

  #partitionOf(request: PartitionRequest): Partition {
    const names = namesOf(request);
    const partition = this.workers.partition(names);
    if (partition !== undefined) return partition;
    throw new NoWorkerError(`none serves model "${names.modelName}" in group "${names.routingGroup}"`);
  }

  #keptOf(request: SelectRequest, { partition, row, prompt, overlapBlocks, blockSize }: Decision): KeptSelection {
    const { expectedOutputTokens, loraName } = request;
    const { session, tenant } = sessionNamed(request);
    return {
      partition,
      row,
      worker: row.worker,
      sequenceHashes: prompt.sequenceHashes,
      islTokens: prompt.promptTokens,
      effectivePrefillTokens: prefillTokensOf(prompt.promptTokens, overlapBlocks, blockSize),
      expectedOutputTokens,
      trackPrefillTokens: request.trackPrefillTokens ?? this.#trackPrefillTokens,
      loraName,
      overlapBlocks,
      session,
      tenant,
    };
  }

  #selectAgain(request: SelectRequest, known: LiveBooking, nowMs: number): Selection & Booking {
    const partition = this.#partitionOf(request);
    const { expectedOutputTokens } = request;
    const { sequenceHashes, promptTokens } = resolvePrompt(request, blockSizeOf(partition));
    const claimed = { partition, sequenceHashes, islTokens: promptTokens, expectedOutputTokens };
    const booking = this.#ledger.again(known, claimed, nowMs);
    return selectionAgain(known.inputs, booking, sequenceHashes, this.#busy);
  }

  #forgetRanks(rows: readonly WorkerRow[]): void {
    this.#ledger.forget(rows);
    for (const row of rows) {
      this.#index.clear(row.worker);
      this.#sizes.forget(row);
      this.#sessions.removeRank(row.worker);
    }
  }

  // A worker that comes back starts empty: nothing of it is left anywhere. A policy may throw, and comes last.
  #forgetWorker(workerId: WorkerId, rows: readonly WorkerRow[]): void {
    this.#ledger.forget(rows);
    this.#index.removeWorker(workerId);
    this.#sessions.removeWorker(workerId);
    this.#policy.removeWorker?.(workerId);
  }
}
