/** How a request ended. */
export type Outcome = "complete" | "cancelled" | "failed";

/** What happens to a request, for metrics. Durations are in milliseconds, from the start of the request. */
export type RouterEvent =
  /** Two workers were chosen, and the prompt is on its way. `attempt` is 1, then 2 if prefill is tried again. */
  | { type: "prefill"; requestId: bigint; prefillRank: number; decodeRank: number; attempt: number }
  /** The prefill phase failed, and another worker is tried under a new request id. */
  | { type: "retry"; requestId: bigint; prefillRank: number; error: unknown }
  /** The KV cache is with the decode worker. */
  | { type: "decode"; requestId: bigint; kvBytes: number; elapsedMs: number }
  | { type: "first-token"; requestId: bigint; elapsedMs: number }
  /** The last event of every request that was begun. `requestId` is absent where no worker could be chosen. */
  | {
      type: "end";
      requestId: bigint | undefined;
      outcome: Outcome;
      tokens: number;
      elapsedMs: number;
      error?: unknown;
    }
  /** More requests are in flight than allowed, or the router is closed: nothing was begun. */
  | { type: "refused"; error: unknown }
  /** A worker is gone, and is chosen no more until it is added again. */
  | { type: "worker-lost"; rank: number; reason: Error };
