/** Requests with cached tokens that a judgement rests on. */
export const PREDICTION_REQUESTS = 100;
/** Predictions and reports disagree when one is below this part of the other. */
export const PREDICTION_RATIO = 0.1;

/** How many tokens of a prompt were cached: what the index said, and what the engine reported afterwards. */
export interface CachedTokens {
  readonly predicted: number;
  readonly actual: number;
}

/**
 * Compares what the index predicts with what the engine reports, a hundred requests at a time.
 *
 * A hash that differs, because of another chat template or a salt that the wire does not show, shows in no event: it
 * shows here, as hits that nobody foresaw.
 */
export class PredictionCheck {
  readonly #blockSize: number;
  #requests = 0;
  #predicted = 0;
  #actual = 0;
  #mismatch: CachedTokens | null = null;

  constructor(blockSize: number) {
    this.#blockSize = blockSize;
  }

  /** The sums of the last hundred requests, if they disagree. */
  get mismatch(): CachedTokens | null {
    return this.#mismatch;
  }

  /** Takes the figures of one request. Without a cached block on either side they say nothing. */
  report({ predicted, actual }: CachedTokens): void {
    if (Math.max(predicted, actual) < this.#blockSize) return;
    this.#requests++;
    this.#predicted += predicted;
    this.#actual += actual;
    if (this.#requests < PREDICTION_REQUESTS) return;
    const [low, high] = [Math.min(this.#predicted, this.#actual), Math.max(this.#predicted, this.#actual)];
    this.#mismatch = low < high * PREDICTION_RATIO ? { predicted: this.#predicted, actual: this.#actual } : null;
    this.#requests = 0;
    this.#predicted = 0;
    this.#actual = 0;
  }
}
