import { expect } from "vitest";
import {
  DecodeWorker,
  type DecodeWorkerOptions,
  DisaggRouter,
  type DisaggRouterOptions,
  PrefillWorker,
  type PrefillWorkerOptions,
} from "../../src/disagg/index.js";
import { MemoryNetwork, type MemoryNetworkOptions } from "../../src/transport/memory.js";
import type { Envelope } from "../../src/transport/types.js";
import { VirtualClock } from "./router-clock.js";
import { decodeStep, prefill } from "./router-model.js";

type RouterSettings = Partial<Omit<DisaggRouterOptions, "transport" | "clock">>;

/** Options of a worker, or what makes them where they need the clock. */
type Settings<Options> = Partial<Options> | ((clock: VirtualClock) => Partial<Options>);

function settings<Options>(given: Settings<Options> | undefined, clock: VirtualClock): Partial<Options> {
  return typeof given === "function" ? given(clock) : (given ?? {});
}

/** Which ranks do what, and how. */
export interface Plan {
  readonly routers?: readonly number[];
  readonly prefill?: readonly number[];
  readonly decode?: readonly number[];
  readonly network?: (clock: VirtualClock) => MemoryNetworkOptions;
  readonly router?: RouterSettings;
  /** Is called before anything runs. */
  readonly onStage?: (stage: Stage) => void;
  readonly prefillWorker?: Settings<PrefillWorkerOptions>;
  readonly decodeWorker?: Settings<DecodeWorkerOptions>;
}

/** Routers and workers on one memory network and one virtual clock. */
export class Stage {
  readonly clock = new VirtualClock();
  readonly network: MemoryNetwork;
  readonly routers: DisaggRouter[];
  readonly prefill: PrefillWorker[];
  readonly decode: DecodeWorker[];
  /** Settle when the workers have ended, with why. */
  readonly runs = new Map<number, Promise<unknown>>();

  constructor(plan: Plan = {}) {
    const { routers = [0], prefill: prefillWorkers = [1], decode: decodeWorkers = [2] } = plan;
    const { clock } = this;
    plan.onStage?.(this);
    this.network = new MemoryNetwork(plan.network?.(clock) ?? {});
    const transports = new Map(
      [...routers, ...prefillWorkers, ...decodeWorkers].map((rank) => [rank, this.network.connect(rank)]),
    );
    const transport = (rank: number) => transports.get(rank) as NonNullable<ReturnType<typeof transports.get>>;
    this.routers = routers.map(
      (rank) => new DisaggRouter({ prefillWorkers, decodeWorkers, ...plan.router, transport: transport(rank), clock }),
    );
    this.prefill = prefillWorkers.map((rank) => {
      const worker = new PrefillWorker({
        prefill,
        ...settings(plan.prefillWorker, clock),
        transport: transport(rank),
        clock,
      });
      this.#run(rank, worker);
      return worker;
    });
    this.decode = decodeWorkers.map((rank) => {
      const worker = new DecodeWorker({
        decodeStep,
        ...settings(plan.decodeWorker, clock),
        transport: transport(rank),
        clock,
      });
      this.#run(rank, worker);
      return worker;
    });
  }

  get router(): DisaggRouter {
    return this.routers[0] as DisaggRouter;
  }

  get prefillWorker(): PrefillWorker {
    return this.prefill[0] as PrefillWorker;
  }

  get decodeWorker(): DecodeWorker {
    return this.decode[0] as DecodeWorker;
  }

  #run(rank: number, worker: PrefillWorker | DecodeWorker): void {
    const run = worker.run().catch((error: unknown) => error);
    this.runs.set(rank, run);
  }

  /** Checks that routers and workers hold nothing, and that no timer runs. */
  expectRest(): void {
    for (const router of this.routers) {
      const { inFlight, workers, notices } = router.stats();
      expect({ inFlight, notices, loads: workers.map((worker) => worker.inFlight) }).toEqual({
        inFlight: 0,
        notices: 0,
        loads: workers.map(() => 0),
      });
    }
    for (const worker of [...this.prefill, ...this.decode]) expectIdle(worker);
    expect(this.clock.timers).toBe(0);
  }
}

export function expectIdle(worker: PrefillWorker | DecodeWorker): void {
  const { running, waiting, pending, heldBytes, notices } = worker.stats();
  expect({ running, waiting, pending, heldBytes, notices }).toEqual({
    running: 0,
    waiting: 0,
    pending: 0,
    heldBytes: 0,
    notices: 0,
  });
}

export const prompt = (...tokens: number[]): BigInt64Array => BigInt64Array.from(tokens, BigInt);

/** Records every message that is sent. */
export function recorded(plan: Plan = {}): { stage: Stage; sent: Envelope[] } {
  const sent: Envelope[] = [];
  const stage = new Stage({ ...plan, network: () => ({ loses: (envelope) => sent.push(envelope) === 0 }) });
  return { stage, sent };
}

/** The code of an error. */
export const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;

/** A step function that goes on for ever. */
export const endless = { decodeStep: (_kv: Uint8Array, _last: bigint, position: number) => BigInt(position) };

export const never = (): Promise<never> => new Promise(() => {});
