/** How many reports the means go over: later ones count as much as the last of these. */
export const PREDICTION_WINDOW = 100;
/** Reports before which nothing is said. */
export const MISMATCH_REPORTS = 50;
/** By how much the shares of cached tokens have to differ for a mismatch. */
export const MISMATCH_SHARE = 0.25;
/** To what the difference has to fall for the mismatch to be over: in between it is neither begun nor ended. */
export const RECOVERY_SHARE = 0.15;
export const PREDICTION_WARNING = "KVROUTE_WARNING_PREDICTION_MISMATCH";

/** What was predicted of a request, and what its engine reports, in tokens of one size. */
export interface PredictionReport {
  readonly predictedTokens: number;
  /** Those that were cached. */
  readonly cachedTokens: number;
  /** `undefined` where the engine does not say. */
  readonly promptTokens: number | undefined;
}

/** How well predictions of cached tokens hold. The means are over the last hundred reports or so. */
export interface PredictionStats {
  /** Reports that there were in all. */
  readonly reports: number;
  /** Actual less predicted tokens, of a request: below 0 where too much was predicted. */
  readonly meanErrorTokens: number;
  /** The same without signs. */
  readonly meanAbsoluteErrorTokens: number;
  /** The part of the prompts' tokens that was believed to be cached, 0 to 1. */
  readonly predictedShare: number;
  /** The part that was. */
  readonly actualShare: number;
  /** Whether the two differ as they should not. */
  readonly isMismatched: boolean;
  /** How often that has begun. */
  readonly mismatches: number;
}

/** What a tracker is made with. */
export interface PredictionTrackerOptions {
  /** Is told once when a mismatch begins, and again only after it has ended. */
  readonly onWarning?: ((warning: { readonly name: string; readonly message: string }) => void) | undefined;
}

/**
 * Follows how far what the router predicts of cached tokens is from what engines report.
 *
 * Other hashes than the engine's, because of another chat template or a salt, show nowhere else: each request is answered
 * well, and none goes where its prompt is cached. So a difference that stays is told.
 */
export class PredictionTracker {
  readonly #onWarning: PredictionTrackerOptions["onWarning"];
  #reports = 0;
  #errorTokens = 0;
  #absoluteErrorTokens = 0;
  #predictedTokens = 0;
  #actualTokens = 0;
  #promptTokens = 0;
  #isMismatched = false;
  #mismatches = 0;

  constructor({ onWarning }: PredictionTrackerOptions = {}) {
    this.#onWarning = onWarning;
  }

  get stats(): PredictionStats {
    return {
      reports: this.#reports,
      meanErrorTokens: this.#errorTokens,
      meanAbsoluteErrorTokens: this.#absoluteErrorTokens,
      predictedShare: this.#shareOf(this.#predictedTokens),
      actualShare: this.#shareOf(this.#actualTokens),
      isMismatched: this.#isMismatched,
      mismatches: this.#mismatches,
    };
  }

  /** Takes the figures of one request. A prompt without tokens says nothing, nor does what is no count; no part exceeds the prompt. */
  report({ predictedTokens, cachedTokens, promptTokens = 0 }: PredictionReport): void {
    if (!(isCount(predictedTokens) && isCount(cachedTokens) && isCount(promptTokens) && promptTokens > 0)) return;
    const predicted = Math.min(predictedTokens, promptTokens);
    const actual = Math.min(cachedTokens, promptTokens);
    const part = 1 / Math.min(++this.#reports, PREDICTION_WINDOW);
    this.#errorTokens += (actual - predicted - this.#errorTokens) * part;
    this.#absoluteErrorTokens += (Math.abs(actual - predicted) - this.#absoluteErrorTokens) * part;
    this.#predictedTokens += (predicted - this.#predictedTokens) * part;
    this.#actualTokens += (actual - this.#actualTokens) * part;
    this.#promptTokens += (promptTokens - this.#promptTokens) * part;
    this.#judge();
  }

  #judge(): void {
    if (this.#reports < MISMATCH_REPORTS) return;
    const difference = Math.abs(this.#errorTokens) / this.#promptTokens;
    if (this.#isMismatched) {
      this.#isMismatched = difference > RECOVERY_SHARE;
    } else if (difference > MISMATCH_SHARE) {
      this.#isMismatched = true;
      this.#mismatches++;
      this.#onWarning?.({ name: PREDICTION_WARNING, message: this.#message() });
    }
  }

  #message(): string {
    const [predicted, actual] = [this.#predictedTokens, this.#actualTokens].map((tokens) =>
      percent(this.#shareOf(tokens)),
    );
    const few = "the hashes of the router are not those of the engines, or others use the engines as well";
    const many = "the engines cache nothing, or far less than the router believes";
    const why = this.#errorTokens > 0 ? few : many;
    return `Expected ${predicted} of the tokens of prompts to be cached, but the engines report ${actual}: ${why}.`;
  }

  #shareOf(tokens: number): number {
    return this.#promptTokens === 0 ? 0 : tokens / this.#promptTokens;
  }
}

function isCount(tokens: number): boolean {
  return tokens >= 0 && tokens < Number.POSITIVE_INFINITY;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
