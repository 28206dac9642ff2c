import type { Clock } from "../clock.js";
import type { Transport } from "../transport/types.js";
import type { DECODE_LIMITS, LimitOptions, PREFILL_LIMITS, ROUTER_LIMITS } from "./common/limits.js";
import type { RouterEvent } from "./router/events.js";

/** How a router is made. Every limit may be left out; docs/disagg.md lists them with their defaults. */
export interface DisaggRouterOptions extends LimitOptions<keyof typeof ROUTER_LIMITS> {
  /** The router's end. It is the router's alone; closing it is the caller's. */
  readonly transport: Transport;
  /** Ranks of the workers that compute prompts. No rank may do both. */
  readonly prefillWorkers: readonly number[];
  /** Ranks of the workers that generate. */
  readonly decodeWorkers: readonly number[];
  /** Which of several prefill workers with equal load is chosen: the next in turn, or the first. */
  readonly tieBreak?: "rotate" | "first" | undefined;
  /** Sessions whose decode worker is remembered. */
  readonly maxSessions?: number | undefined;
  /** How long after its last answer a session is remembered; for ever if it is left out. */
  readonly sessionTtlMs?: number | undefined;
  /** The first request id, 1 if it is left out. A router that starts anew under its rank may go on where it was. */
  readonly firstRequestId?: bigint | undefined;
  /** Is told what happens to each request, as it happens. What it throws is counted, and changes nothing. */
  readonly onEvent?: ((event: RouterEvent) => void) | undefined;
  readonly clock?: Clock | undefined;
}

export interface PrefillWorkerOptions extends LimitOptions<keyof typeof PREFILL_LIMITS> {
  /** The worker's end. It is the worker's alone; closing it is the caller's. */
  readonly transport: Transport;
  /**
   * Computes the KV cache of a prompt, one byte at least. The array is given away: nobody may change it afterwards.
   * `signal` is aborted when the request is given up; the place it takes is free once the function returns.
   */
  readonly prefill: (
    tokens: BigInt64Array<ArrayBuffer>,
    signal: AbortSignal,
  ) => Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
  readonly clock?: Clock | undefined;
}

/** What a decode step gives: the next token, and the KV cache to go on with where it is not the same array. */
export type DecodeStep = bigint | { readonly token: bigint; readonly kv: Uint8Array };

export interface DecodeWorkerOptions extends LimitOptions<keyof typeof DECODE_LIMITS> {
  /** The worker's end. It is the worker's alone; closing it is the caller's. */
  readonly transport: Transport;
  /**
   * Computes the next token. `lastToken` is 0 at first; `position` starts at what the KV cache begins with, a u32.
   * `EOS_TOKEN` and `DONE_SENTINEL` end the answer. `signal` is aborted when the request is given up.
   */
  readonly decodeStep: (
    kv: Uint8Array,
    lastToken: bigint,
    position: number,
    signal: AbortSignal,
  ) => DecodeStep | Promise<DecodeStep>;
  readonly clock?: Clock | undefined;
}
