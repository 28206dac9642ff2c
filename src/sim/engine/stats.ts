import { Histogram } from "./histogram.js";
import type { FinishReason } from "./sequence.js";

/** What an engine has counted, and how it stands. */
export interface EngineStats {
  readonly numRunning: number;
  readonly numWaiting: number;
  /** Blocks in use, of `numGpuBlocks`. */
  readonly numActiveBlocks: number;
  readonly numGpuBlocks: number;
  readonly blockSize: number;
  /** Tokens of prompts that were looked up in the cache, and those that were found, at first admissions. */
  readonly prefixCacheQueries: number;
  readonly prefixCacheHits: number;
  /** Tokens of prompts whose prefill has ended, cached ones included. */
  readonly promptTokens: number;
  readonly generationTokens: number;
  readonly preemptions: number;
  readonly passes: number;
  readonly submitted: number;
  readonly finished: Readonly<Record<FinishReason, number>>;
  readonly timeToFirstTokenSeconds: Histogram;
  readonly interTokenLatencySeconds: Histogram;
  readonly e2eRequestLatencySeconds: Histogram;
}

// The bounds of vLLM's histograms, in seconds.
const FIRST_TOKEN = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const INTER_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];

/** What an engine counts itself. */
export class EngineCounters {
  promptTokens = 0;
  generationTokens = 0;
  passes = 0;
  submitted = 0;
  readonly finished: Record<FinishReason, number> = { stop: 0, length: 0, abort: 0 };
  readonly timeToFirstTokenSeconds = new Histogram(FIRST_TOKEN);
  readonly interTokenLatencySeconds = new Histogram(INTER_TOKEN);
  readonly e2eRequestLatencySeconds = new Histogram(REQUEST);
}
