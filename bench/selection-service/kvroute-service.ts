import { BLOCK_TOKENS, type Service, WORKERS } from "./scene.js";

type Kvroute = typeof import("kvroute");

/** The package's selection service, under the names that the benchmarks call. */
export class KvrouteService implements Service {
  readonly #service: InstanceType<Kvroute["SelectionService"]>;
  readonly #index: InstanceType<Kvroute["PrefixIndex"]>;

  constructor(kvroute: Kvroute) {
    this.#index = new kvroute.PrefixIndex({ maxEntries: 2_000_000 });
    this.#service = new kvroute.SelectionService({
      index: this.#index,
      clock: { now: () => 0 },
      random: () => 0,
      leaseMs: Number.POSITIVE_INFINITY,
    });
    for (let workerId = 0; workerId < WORKERS; workerId++) {
      this.#service.workers.add({ workerId, blockSize: BLOCK_TOKENS });
    }
  }

  remember(workerId: number, hashes: BigUint64Array): void {
    this.#index.store({ workerId, dpRank: 0 }, hashes);
  }

  select(tokenIds: Uint32Array) {
    const { worker, overlapBlocks, sequenceHashes } = this.#service.select({ tokenIds });
    return { worker: worker.workerId as number, overlapBlocks, lastHash: sequenceHashes.at(-1) as bigint };
  }

  reserve(selectionId: string, workerId: number, sequenceHashes: BigUint64Array, islTokens: number): void {
    this.#service.reserve({ selectionId, workerId, sequenceHashes, islTokens, effectivePrefillTokens: islTokens });
  }

  prefillComplete(id: string): void {
    this.#service.prefillComplete(id);
  }

  free(id: string): void {
    this.#service.free(id);
  }
}
