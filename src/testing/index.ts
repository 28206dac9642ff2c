/** An engine for tests: the scheduler and KV cache of vLLM, by itself or behind the HTTP interfaces of OpenAI and Anthropic. */
export type { Clock } from "../clock.js";
export { EngineError, type EngineErrorCode, KvrouteError, OptionError } from "../errors.js";
export { VirtualClock, type VirtualClockOptions } from "../sim/clock.js";
export {
  Engine,
  type EngineOptions,
  type EngineRequest,
  type EngineRun,
  type EngineStats,
  encodeKvEvents,
  type FinishReason,
  type Histogram,
  type KvEvent,
  type KvEventBatch,
  type KvMessage,
  type PassLoad,
  type PassTime,
  type PassTiming,
  polynomialTiming,
  type RunEnd,
  type RunListener,
  type SchedulerOptions,
  type TimingTable,
  tableTiming,
} from "../sim/engine.js";
export type { ToolCall } from "./dialect.js";
export { createFakeEngine, type FakeEngine } from "./fake-engine.js";
export { FAULT_HEADER, type Fault } from "./faults.js";
export type { FakeAnswer, FakeCall, FakeEngineOptions } from "./options.js";
