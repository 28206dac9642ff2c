import { expect } from "vitest";
import type { KvrouteError } from "../../src/errors.js";
import { BLOCK, hashesOf, prompt, SelectionStage } from "../support/selection-stage.js";

// The selection service beside a naive model of it: lists that are walked in the place of counters.

export const LEASE_MS = 100;
export const TTL_MS = 120_000;
export const BOOKINGS_MAX = 6;
const MODELS = ["m", "n"] as const;

/** Prompts that share prefixes: 0, 1, 3 and 5 blocks of one chain, and one of its own. */
const PROMPTS = [new Uint32Array([1]), prompt(1), prompt(3), prompt(5), prompt(4, 1, 2)];
const HASHES = PROMPTS.map((tokens) => hashesOf(tokens));

export type Step =
  | { do: "add"; worker: number; model: number; ranks: number }
  | { do: "remove" | "drain"; worker: number }
  | { do: "select"; id: number; prompt: number; model: number; output: number }
  | { do: "reserve"; id: number; model: number }
  | { do: "reserve on"; id: number; prompt: number; model: number; worker: number; rank: number; output: number }
  | { do: "select and reserve"; id: number; prompt: number; model: number; output: number }
  | { do: "prefill complete" | "touch" | "free" | "report"; id: number }
  | { do: "output"; id: number; decay: number }
  | { do: "wait"; ms: number };

interface ModelWorker {
  model: string;
  ranks: number;
  draining: boolean;
}

interface ModelBooking {
  worker: string;
  rank: number;
  model: string;
  prompt: number;
  output: number;
  /** Tokens whose prefill has not ended. */
  prefill: number;
  outputs: number;
  discount: number;
  renewedAt: number;
}

interface ModelSelection {
  worker: string;
  rank: number;
  prompt: number;
  output: number;
  at: number;
}

export class World {
  readonly #stage = new SelectionStage({ leaseMs: LEASE_MS, maxBookings: BOOKINGS_MAX });
  readonly #workers = new Map<string, ModelWorker>();
  readonly #bookings = new Map<string, ModelBooking>();
  readonly #selections = new Map<string, ModelSelection>();
  #ended = 0;

  get #service() {
    return this.#stage.service;
  }

  get #nowMs(): number {
    return this.#stage.clock.ms;
  }

  run(step: Step): void {
    this.#step(step);
    this.check();
  }

  /** Ends everything in one of the ways that there are, and finds nothing left. */
  finish(): void {
    let way = 0;
    for (const id of [...this.#bookings.keys()]) if (way++ % 2 === 0) this.run({ do: "free", id: Number(id) });
    this.#stage.clock.ms += LEASE_MS + 1;
    this.#service.expire();
    this.#passTime();
    this.check();
    for (const { loads } of this.#service.loads()) {
      for (const { worker: _, ...load } of loads) {
        expect(load).toEqual({ activePrefillTokens: 0, activeBlocks: 0, activeRequests: 0 });
      }
    }
    for (const worker of [...this.#workers.keys()]) this.#service.workers.remove(worker);
    expect(this.#service.stats()).toMatchObject({
      ...{ workers: 0, schedulableRanks: 0, bookings: 0, sessions: 0 },
      index: { blocks: 0, entries: 0 },
    });
    expect([...this.#service.workers.partitions()]).toEqual([]);
  }

  check(): void {
    this.#passTime(); // asking for the loads is a call like any other
    const seen = this.#service
      .loads()
      .flatMap(({ modelName, loads }) =>
        loads.map(({ worker, ...load }) => [`${modelName} ${worker.workerId} ${worker.dpRank}`, load] as const),
      );
    const wanted = [...this.#workers].flatMap(([worker, { model, ranks }]) =>
      Array.from({ length: ranks }, (_, rank) => [`${model} ${worker} ${rank}`, this.#loadOf(worker, rank)] as const),
    );
    expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(wanted));
    const { bookings, expiredBookings, lostBookings } = this.#service.stats();
    expect({ bookings, ended: expiredBookings + lostBookings }).toEqual({
      bookings: this.#bookings.size,
      ended: this.#ended,
    });
    expect(this.#stage.expired).toHaveLength(this.#ended);
  }

  #loadOf(worker: string, rank: number) {
    const here = [...this.#bookings.values()].filter((booking) => booking.worker === worker && booking.rank === rank);
    const blocks = new Set(here.flatMap(({ prompt: at }) => [...(HASHES[at] as BigUint64Array)]));
    return {
      activePrefillTokens: here.reduce((sum, { prefill }) => sum + prefill, 0),
      activeBlocks: blocks.size + here.reduce((sum, { outputs, discount }) => sum + outputs - discount, 0),
      activeRequests: here.length,
    };
  }

  #step(step: Step): void {
    switch (step.do) {
      case "add":
        this.#add(`w${step.worker}`, modelOf(step), step.ranks);
        break;
      case "remove":
        this.#remove(`w${step.worker}`);
        break;
      case "drain":
        this.#drain(`w${step.worker}`);
        break;
      case "select":
        this.#select(step);
        break;
      case "reserve":
        this.#reserve(step);
        break;
      case "reserve on":
        this.#reserveOn(step);
        break;
      case "select and reserve":
        this.#selectAndReserve(step);
        break;
      case "wait":
        this.#stage.clock.ms += step.ms;
        break;
      case "free":
        this.#passTime();
        expect(this.#service.free(`${step.id}`)).toBe(this.#bookings.delete(`${step.id}`));
        break;
      default:
        this.#hear(step);
    }
  }

  #add(worker: string, model: string, ranks: number): void {
    const known = this.#workers.get(worker);
    const isMoved = known !== undefined && known.model !== model;
    this.#lose((booking) => booking.worker === worker && (isMoved || booking.rank >= ranks));
    this.#service.workers.add({ workerId: worker, modelName: model, blockSize: BLOCK, dataParallelSize: ranks });
    if (isMoved) this.#workers.delete(worker);
    this.#workers.set(worker, { model, ranks, draining: false });
  }

  #remove(worker: string): void {
    this.#throws(() => this.#service.workers.remove(worker), this.#workers.has(worker) ? undefined : "UNKNOWN_WORKER");
    this.#workers.delete(worker);
    this.#lose((booking) => booking.worker === worker);
  }

  #drain(worker: string): void {
    const known = this.#workers.get(worker);
    this.#throws(() => this.#service.workers.drain(worker), known === undefined ? "UNKNOWN_WORKER" : undefined);
    if (known !== undefined) known.draining = true;
  }

  #select(step: Extract<Step, { do: "select" }>): void {
    this.#passTime();
    const model = modelOf(step);
    const request = { ...this.#promptOf(step), modelName: model, selectionId: `${step.id}` };
    const selection = this.#throws(() => this.#service.select(request), this.#serves(model) ? undefined : "NO_WORKER");
    if (selection === undefined) return;
    const { worker } = selection;
    const where = { worker: `${worker.workerId}`, rank: worker.dpRank };
    this.#requireChoosable(where.worker, where.rank, model);
    this.#selections.set(`${model} ${step.id}`, {
      ...where,
      prompt: step.prompt,
      output: step.output,
      at: this.#nowMs,
    });
  }

  #reserve(step: Extract<Step, { do: "reserve" }>): void {
    this.#passTime();
    const model = modelOf(step);
    const key = `${model} ${step.id}`;
    const selection = this.#selections.get(key);
    const isPending = selection !== undefined && this.#nowMs - selection.at <= TTL_MS;
    const known = this.#bookings.get(`${step.id}`);
    const request = { selectionId: `${step.id}`, modelName: model };
    let refusal: string | undefined;
    if (!isPending) {
      if (known === undefined) refusal = "UNKNOWN_SELECTION";
      else if (known.model !== model) refusal = "BOOKING_CONFLICT";
    } else if (!this.#isReachable({ ...selection, model }, known)) refusal = "UNKNOWN_WORKER";
    else if (known !== undefined)
      refusal = this.#isSame(known, { ...selection, model }) ? undefined : "BOOKING_CONFLICT";
    else if (this.#bookings.size >= BOOKINGS_MAX) refusal = "BOOKINGS_FULL";
    const booking = this.#throws(() => this.#service.reserve(request), refusal);
    if (booking === undefined) return;
    expect(booking.existing).toBe(known !== undefined);
    if (isPending) this.#selections.delete(key);
    if (known !== undefined) known.renewedAt = this.#nowMs;
    else if (selection !== undefined) this.#book(`${step.id}`, { ...selection, model }, booking.effectivePrefillTokens);
  }

  #reserveOn(step: Extract<Step, { do: "reserve on" }>): void {
    this.#passTime();
    const model = modelOf(step);
    const wanted = { ...step, worker: `w${step.worker}`, model };
    const known = this.#bookings.get(`${step.id}`);
    let refusal: string | undefined;
    if (!this.#isReachable(wanted, known)) refusal = "UNKNOWN_WORKER";
    else if (known !== undefined) refusal = this.#isSame(known, wanted) ? undefined : "BOOKING_CONFLICT";
    else if (this.#bookings.size >= BOOKINGS_MAX) refusal = "BOOKINGS_FULL";
    const booking = this.#throws(
      () =>
        this.#service.reserve({
          ...this.#promptOf(step),
          ...{ selectionId: `${step.id}`, modelName: model, workerId: wanted.worker, dpRank: step.rank },
        }),
      refusal,
    );
    if (booking === undefined) return;
    this.#selections.delete(`${model} ${step.id}`);
    if (known !== undefined) known.renewedAt = this.#nowMs;
    else this.#book(`${step.id}`, wanted, booking.effectivePrefillTokens);
  }

  #selectAndReserve(step: Extract<Step, { do: "select and reserve" }>): void {
    this.#passTime();
    const model = modelOf(step);
    const known = this.#bookings.get(`${step.id}`);
    let refusal: string | undefined;
    if (!this.#hasPartition(model)) refusal = "NO_WORKER";
    else if (known !== undefined) {
      const claimed = { ...step, model, worker: known.worker, rank: known.rank };
      refusal = this.#isSame(known, claimed) ? undefined : "BOOKING_CONFLICT";
    } else if (!this.#serves(model)) refusal = "NO_WORKER";
    else if (this.#bookings.size >= BOOKINGS_MAX) refusal = "BOOKINGS_FULL";
    const request = { ...this.#promptOf(step), modelName: model, selectionId: `${step.id}` };
    const result = this.#throws(() => this.#service.selectAndReserve(request), refusal);
    if (result === undefined) return;
    expect(result.existing).toBe(known !== undefined);
    if (known !== undefined) {
      known.renewedAt = this.#nowMs;
      return;
    }
    this.#selections.delete(`${model} ${step.id}`);
    const where = { worker: `${result.worker.workerId}`, rank: result.worker.dpRank };
    this.#requireChoosable(where.worker, where.rank, model);
    this.#book(`${step.id}`, { ...step, ...where, model }, result.effectivePrefillTokens);
  }

  #hear(step: Extract<Step, { id: number }> & { readonly do: string; readonly decay?: number }): void {
    this.#passTime();
    const id = `${step.id}`;
    const known = this.#bookings.get(id);
    const { decay = 1 } = step;
    const calls: Record<string, () => void> = {
      "prefill complete": () => this.#service.prefillComplete(id),
      touch: () => this.#service.touch(id),
      report: () => this.#service.reportCachedTokens(id, 7),
      output: () => this.#service.outputBlock(id, decay),
    };
    this.#throws(calls[step.do] as () => void, known === undefined ? "UNKNOWN_BOOKING" : undefined);
    if (known === undefined) return;
    known.renewedAt = this.#nowMs;
    if (step.do === "prefill complete") known.prefill = 0;
    if (step.do !== "output") return;
    known.outputs++;
    const others = [...this.#bookings.values()].filter(
      (booking) => booking !== known && booking.worker === known.worker && booking.rank === known.rank,
    );
    const shared = new Set(others.flatMap(({ prompt: at }) => [...(HASHES[at] as BigUint64Array)]));
    const sole = [...(HASHES[known.prompt] as BigUint64Array)].filter((hash) => !shared.has(hash)).length;
    known.discount = Math.round((sole + known.outputs) * (1 - decay) * 1024) / 1024;
  }

  #book(
    id: string,
    what: Pick<ModelBooking, "worker" | "rank" | "model" | "prompt" | "output">,
    prefill: number,
  ): void {
    const { worker, rank, model, prompt: at, output } = what;
    const { length } = PROMPTS[at] as Uint32Array;
    expect(prefill).toBeLessThanOrEqual(length);
    const life = { prefill, outputs: 0, discount: 0, renewedAt: this.#nowMs };
    this.#bookings.set(id, { worker, rank, model, prompt: at, output, ...life });
  }

  #passTime(): void {
    this.#lose(({ renewedAt }) => this.#nowMs - renewedAt > LEASE_MS);
  }

  #lose(isLost: (booking: ModelBooking) => boolean): void {
    for (const [id, booking] of this.#bookings) {
      if (!isLost(booking)) continue;
      this.#bookings.delete(id);
      this.#ended++;
    }
  }

  #promptOf({ prompt: at, output }: { prompt: number; output: number }) {
    return { tokenIds: PROMPTS[at] as Uint32Array, expectedOutputTokens: output };
  }

  #isSame(
    known: ModelBooking,
    claimed: Pick<ModelBooking, "worker" | "rank" | "model" | "prompt" | "output">,
  ): boolean {
    const fields = ["worker", "rank", "model", "prompt", "output"] as const;
    return fields.every((field) => known[field] === claimed[field]);
  }

  #hasPartition(model: string): boolean {
    return [...this.#workers.values()].some((worker) => worker.model === model);
  }

  #serves(model: string): boolean {
    return [...this.#workers.values()].some((worker) => worker.model === model && !worker.draining);
  }

  #isChoosable(worker: string, rank: number, model: string): boolean {
    const known = this.#workers.get(worker);
    return known !== undefined && known.model === model && rank < known.ranks && !known.draining;
  }

  /** Whether a worker can be booked on, or has the booking already and drains. */
  #isReachable(
    { worker, rank, model }: Pick<ModelBooking, "worker" | "rank" | "model">,
    known: ModelBooking | undefined,
  ): boolean {
    const isBooked = known?.worker === worker && known.rank === rank && known.model === model;
    return isBooked || this.#isChoosable(worker, rank, model);
  }

  #requireChoosable(worker: string, rank: number, model: string): void {
    expect(this.#isChoosable(worker, rank, model)).toBe(true);
  }

  /** Calls, and expects the refusal that the model foresees, or none. */
  #throws<T>(call: () => T, refusal: string | undefined): T | undefined {
    let thrown: string | undefined;
    let result: T | undefined;
    try {
      result = call();
    } catch (error) {
      thrown = (error as KvrouteError).code;
      if (thrown === undefined) throw error;
    }
    expect(thrown).toBe(refusal === undefined ? undefined : `KVROUTE_${refusal}`);
    return result;
  }
}

function modelOf({ model }: { model: number }): string {
  return MODELS[model] as string;
}
