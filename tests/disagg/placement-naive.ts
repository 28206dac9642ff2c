import { PlacementError } from "../../src/errors.js";

// The same rules as src/disagg/placement, the slow and obvious way: lists that are searched from the front.

type Codes = ConstructorParameters<typeof PlacementError>[0];
const refuse = (code: Codes): never => {
  throw new PlacementError(code, "naive");
};

interface Worker {
  rank: number;
  inFlight: number;
  state: "at-work" | "draining" | "removed";
}

export class NaiveLeastLoaded {
  /** Everybody who is known; those at work in their order, first the one whose turn it is. */
  #known: Worker[];
  #queue: number[];
  readonly #order: number[];
  readonly #rotates: boolean;

  constructor(ranks: readonly number[], rotates: boolean) {
    this.#known = ranks.map((rank) => ({ rank, inFlight: 0, state: "at-work" }));
    this.#queue = [...ranks];
    this.#order = [...ranks];
    this.#rotates = rotates;
  }

  choose(): number {
    if (this.#queue.length === 0) refuse("KVROUTE_NO_WORKERS");
    const least = Math.min(...this.#queue.map((rank) => this.inFlight(rank)));
    const chosen = this.#queue.find((rank) => this.inFlight(rank) === least) as number;
    (this.#find(chosen) as Worker).inFlight++;
    if (this.#rotates) {
      const after = this.#order.indexOf(chosen) + 1;
      this.#queue = [...this.#order.slice(after), ...this.#order.slice(0, after)];
    }
    return chosen;
  }

  release(rank: number): void {
    const worker = this.#find(rank);
    if (worker === undefined) return;
    if (worker.inFlight === 0) refuse("KVROUTE_RELEASE_IDLE");
    worker.inFlight--;
    this.#tidy();
  }

  inFlight(rank: number): number {
    return this.#find(rank)?.inFlight ?? 0;
  }

  addWorker(rank: number): void {
    const worker = this.#find(rank);
    if (worker?.state === "at-work") refuse("KVROUTE_DUPLICATE_RANK");
    if (worker === undefined) this.#known.push({ rank, inFlight: 0, state: "at-work" });
    else worker.state = "at-work";
    addLast(this.#order, this.#queue, rank);
  }

  drainWorker(rank: number): void {
    const worker = this.#find(rank);
    const isThere = worker !== undefined && worker.state !== "removed";
    if (!isThere) refuse("KVROUTE_UNKNOWN_RANK");
    else worker.state = "draining";
    this.#takeOut(rank);
  }

  removeWorker(rank: number): void {
    const worker = this.#find(rank);
    if (worker === undefined) return;
    worker.state = "removed";
    this.#takeOut(rank);
    this.#tidy();
  }

  loads(): Worker[] {
    return this.#known.map((worker) => ({ ...worker }));
  }

  #find(rank: number): Worker | undefined {
    return this.#known.find((worker) => worker.rank === rank);
  }

  #takeOut(rank: number): void {
    takeOut(this.#order, rank);
    takeOut(this.#queue, rank);
  }

  #tidy(): void {
    this.#known = this.#known.filter((worker) => worker.state !== "removed" || worker.inFlight > 0);
  }
}

export class NaiveSessionAffinity {
  /** Ranks at work in their order, and the same ranks from the one whose turn it is. */
  readonly #order: number[];
  readonly #queue: number[];
  #drained: number[] = [];
  /** Least recently used first. */
  #sessions: { name: string; rank: number; at: number }[] = [];
  ignoredRecords = 0;

  constructor(
    ranks: readonly number[],
    readonly maxSessions: number,
    readonly ttlMs: number,
  ) {
    this.#order = [...ranks];
    this.#queue = [...ranks];
  }

  get size(): number {
    return this.#sessions.length;
  }

  choose(name: string | undefined, now: number): number {
    const session = this.#sessions.find((one) => one.name === name);
    if (session !== undefined) {
      this.#sessions = this.#sessions.filter((one) => one !== session);
      if (now - session.at <= this.ttlMs) {
        this.#sessions.push(session);
        if (this.#order.includes(session.rank)) return session.rank;
      }
    }
    const next = this.#queue.shift();
    if (next === undefined) return refuse("KVROUTE_NO_WORKERS");
    this.#queue.push(next);
    return next;
  }

  record(name: string, rank: number, now: number): void {
    if (!this.#order.includes(rank) && !this.#drained.includes(rank)) {
      this.ignoredRecords++;
      return;
    }
    this.#sessions = [...this.#sessions.filter((one) => one.name !== name), { name, rank, at: now }];
    while (this.#sessions.length > this.maxSessions) this.#sessions.shift();
  }

  evict(name: string): void {
    this.#sessions = this.#sessions.filter((one) => one.name !== name);
  }

  addWorker(rank: number): void {
    if (this.#order.includes(rank)) refuse("KVROUTE_DUPLICATE_RANK");
    this.#drained = this.#drained.filter((other) => other !== rank);
    addLast(this.#order, this.#queue, rank);
  }

  drainWorker(rank: number): void {
    if (!this.#order.includes(rank) && !this.#drained.includes(rank)) refuse("KVROUTE_UNKNOWN_RANK");
    takeOut(this.#order, rank);
    takeOut(this.#queue, rank);
    if (!this.#drained.includes(rank)) this.#drained.push(rank);
  }

  removeWorker(rank: number): void {
    takeOut(this.#order, rank);
    takeOut(this.#queue, rank);
    this.#drained = this.#drained.filter((other) => other !== rank);
    this.#sessions = this.#sessions.filter((one) => one.rank !== rank);
  }
}

/** Adds a rank at the end of the order, which the turn reaches after the last of it. */
function addLast(order: number[], queue: number[], rank: number): void {
  const turn = queue[0];
  order.push(rank);
  const from = turn === undefined ? 0 : order.indexOf(turn);
  queue.splice(0, queue.length, ...order.slice(from), ...order.slice(0, from));
}

function takeOut(list: number[], rank: number): void {
  const index = list.indexOf(rank);
  if (index >= 0) list.splice(index, 1);
}
