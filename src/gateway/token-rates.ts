import { BYTES_PER_TOKEN } from "./options.js";
import type { Usage } from "./usage.js";

/** Models whose rates are remembered. */
export const MODELS_MAX = 1_024;

/** How many reports the mean goes over: later ones count as much as the last of these. */
const REPORTS = 32;
const LEAST = 0.25;
const MOST = 64;

interface Rate {
  reports: number;
  bytesPerToken: number;
}

/** Learns how many bytes of prompt make a token of each model. The models that were used last are remembered. */
export class TokenRates {
  readonly #rates = new Map<string, Rate>();
  readonly #maxModels: number;
  /** The model that was used last, which need not be moved. */
  #newest: string | undefined;

  constructor(maxModels: number = MODELS_MAX) {
    this.#maxModels = maxModels;
  }

  get(model: string): number {
    return this.#rates.get(model)?.bytesPerToken ?? BYTES_PER_TOKEN;
  }

  /** Takes down what an engine counted for a prompt of so many bytes. */
  learn(model: string, promptBytes: number, { promptTokens }: Usage): void {
    if (promptTokens === undefined || promptTokens === 0 || promptBytes === 0) return;
    const seen = Math.min(Math.max(promptBytes / promptTokens, LEAST), MOST);
    const rate = this.#rates.get(model) ?? { reports: 1, bytesPerToken: BYTES_PER_TOKEN };
    rate.reports = Math.min(rate.reports + 1, REPORTS);
    rate.bytesPerToken += (seen - rate.bytesPerToken) / rate.reports;
    if (model === this.#newest) return;
    this.#newest = model;
    this.#rates.delete(model);
    this.#rates.set(model, rate); // last in the order, which is that of use
    if (this.#rates.size > this.#maxModels) this.#rates.delete(this.#rates.keys().next().value as string);
  }

  /** The rates by model. */
  list(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#rates].map(([model, { bytesPerToken }]) => [model, bytesPerToken]));
  }
}
