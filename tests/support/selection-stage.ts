import { hashTokens } from "../../src/core/token-hash.js";
import { SelectionService, type SelectionServiceOptions } from "../../src/selection/service.js";
import type { WorkerRegistration } from "../../src/selection/workers.js";
import { Prng } from "../../src/sim/prng.js";

/** Tokens in a block of the stage's workers. */
export const BLOCK = 4;

/** A service with a clock that tests move and a chance that can be repeated. */
export class SelectionStage {
  readonly clock = { ms: 0, now: (): number => this.clock.ms };
  readonly service: SelectionService;
  readonly expired: string[] = [];

  constructor(options: SelectionServiceOptions = {}, seed = 1) {
    const chance = new Prng(seed);
    let ids = 0;
    this.service = new SelectionService({
      clock: this.clock,
      random: () => chance.random(),
      newId: () => `made-${ids++}`,
      onExpired: ({ selectionId, reason }) => this.expired.push(`${selectionId} ${reason}`),
      ...options,
    });
  }

  /** Adds workers with ids, all alike. */
  add(...workers: readonly (string | WorkerRegistration)[]): this {
    for (const worker of workers) {
      const registration = typeof worker === "string" ? { workerId: worker } : worker;
      this.service.workers.add({ blockSize: BLOCK, ...registration });
    }
    return this;
  }

  /** What is booked on each worker of the default partition, by id and rank. */
  loads(): Record<string, { tokens: number; blocks: number; requests: number }> {
    const [partition] = this.service.loads({ modelName: "default", routingGroup: "default" });
    const rows = (partition?.loads ?? []).map(({ worker, activePrefillTokens, activeBlocks, activeRequests }) => {
      const name = worker.dpRank === 0 ? `${worker.workerId}` : `${worker.workerId}/${worker.dpRank}`;
      return [name, { tokens: activePrefillTokens, blocks: activeBlocks, requests: activeRequests }];
    });
    return Object.fromEntries(rows);
  }
}

export const IDLE = { tokens: 0, blocks: 0, requests: 0 };

/** A prompt of so many blocks, all of whose tokens are its own from block `shared` on. */
export function prompt(blocks: number, own = 0, shared = 0): Uint32Array {
  return Uint32Array.from({ length: blocks * BLOCK }, (_, at) =>
    at < shared * BLOCK ? at : at + 1_000_000 * (own + 1),
  );
}

/** The hashes of a prompt's blocks. */
export const hashesOf = (tokens: Uint32Array): BigUint64Array => hashTokens(tokens, { blockSize: BLOCK }).sequence;
