export type Model = "a" | "b";

export type Step =
  | { readonly verb: "enter"; readonly model: Model; readonly hasSignal: boolean }
  /** A request ends. */
  | { readonly verb: "free"; readonly model: Model; readonly isTold: boolean }
  | { readonly verb: "abort"; readonly which: number }
  /** From now on the attempt of a request throws. */
  | { readonly verb: "spoil"; readonly which: number }
  | { readonly verb: "advance"; readonly ms: number }
  /** A worker has a rest: when it is over, one more request of a model can go, and nobody says so. */
  | { readonly verb: "rest"; readonly model: Model; readonly ms: number }
  | { readonly verb: "wake" }
  | { readonly verb: "close" };

export interface Settings {
  readonly maxQueued: number;
  readonly queueTimeoutMs: number;
  readonly slots: number;
  /** Whether the queue is told which requests can go to the same workers. */
  readonly isGrouped: boolean;
}

export type Fate = "waiting" | "gone" | "full" | "late" | "aborted" | "spoilt" | "closed";

interface Request {
  readonly model: Model;
  readonly sinceMs: number;
  readonly hasSignal: boolean;
  isSpoilt: boolean;
  fate: Fate;
  hasWaited: boolean;
}

/** The queue as a list of all requests that ever came, walked from the beginning for every question. */
export class NaiveAdmission {
  readonly requests: Request[] = [];
  readonly order: number[] = [];
  readonly slots: Record<Model, number>;
  readonly busy: Record<Model, number> = { a: 0, b: 0 };
  /** What is free by time alone, and when. */
  resting: { readonly model: Model; readonly atMs: number }[] = [];
  nowMs = 0;
  isClosed = false;

  constructor(readonly settings: Settings) {
    this.slots = { a: settings.slots, b: settings.slots };
  }

  get waiting(): Request[] {
    return this.requests.filter(({ fate }) => fate === "waiting");
  }

  count(fate: Fate, hasWaited?: boolean): number {
    return this.requests.filter((one) => one.fate === fate && (hasWaited === undefined || one.hasWaited === hasWaited))
      .length;
  }

  step(step: Step): void {
    if (step.verb === "enter") this.#enter(step.model, step.hasSignal);
    if (step.verb === "free" && this.busy[step.model] > 0) {
      this.busy[step.model]--;
      this.slots[step.model]++;
      if (step.isTold) this.#pass();
    }
    if (step.verb === "abort") this.#abort(this.requests[step.which]);
    if (step.verb === "spoil") this.#spoil(this.requests[step.which]);
    if (step.verb === "advance") this.#advance(step.ms);
    if (step.verb === "rest") this.resting.push({ model: step.model, atMs: this.nowMs + step.ms });
    if (step.verb === "rest" || step.verb === "wake") this.#pass();
    if (step.verb === "close") {
      this.isClosed = true;
      for (const one of this.waiting) one.fate = "closed";
    }
  }

  #enter(model: Model, hasSignal: boolean): void {
    const request = {
      model,
      sinceMs: this.nowMs,
      hasSignal,
      isSpoilt: false,
      fate: "waiting" as Fate,
      hasWaited: false,
    };
    this.requests.push(request);
    if (this.isClosed) {
      request.fate = "closed";
      return;
    }
    this.#pass();
    if (request.fate === "waiting" && this.waiting.length > this.settings.maxQueued) request.fate = "full";
    request.hasWaited = request.fate === "waiting";
  }

  #pass(): void {
    const stuck = new Set<Model>();
    for (const [number, one] of this.requests.entries()) {
      if (one.fate !== "waiting" || (this.settings.isGrouped && stuck.has(one.model))) continue;
      if (one.isSpoilt) one.fate = "spoilt";
      else if (this.slots[one.model] === 0) stuck.add(one.model);
      else {
        this.slots[one.model]--;
        this.busy[one.model]++;
        one.fate = "gone";
        this.order.push(number);
      }
    }
  }

  #abort(one: Request | undefined): void {
    if (one?.fate === "waiting" && one.hasSignal) one.fate = "aborted";
  }

  #spoil(one: Request | undefined): void {
    if (one !== undefined) one.isSpoilt = true;
  }

  #advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    const moments = new Set(this.resting.map(({ atMs }) => atMs).filter((atMs) => atMs <= untilMs));
    for (const moment of [...moments].sort((one, other) => one - other)) {
      this.#expire(moment);
      for (const { model, atMs } of this.resting) if (atMs === moment) this.slots[model]++;
      this.#pass();
    }
    this.resting = this.resting.filter(({ atMs }) => atMs > untilMs);
    this.#expire(untilMs);
  }

  #expire(nowMs: number): void {
    this.nowMs = nowMs;
    for (const one of this.waiting) if (this.nowMs - one.sinceMs >= this.settings.queueTimeoutMs) one.fate = "late";
  }
}
