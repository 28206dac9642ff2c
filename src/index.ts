/// <reference lib="esnext.disposable" preserve="true" />

export type { Clock } from "./clock.js";
export { BlockPool, type BlockPoolOptions, type ReserveOutcome } from "./core/block-pool.js";
export { compileCore } from "./core/compile.js";
export type { BlockCopyId, CopyIds, Hashes, SequenceHash, WorkerId, WorkerWithDpRank } from "./core/keys.js";
export { type Overlap, PrefixIndex, type StoreOptions } from "./core/prefix-index.js";
export type { PrefixIndexOptions } from "./core/prefix-options.js";
export type { BlockReservation } from "./core/reservation.js";
export {
  type HashOptions,
  type HashTextOptions,
  type HashTokensOptions,
  hashText,
  hashTokens,
  type TokenHashes,
  xxh3,
} from "./core/token-hash.js";
export {
  AlreadyCachedError,
  ArgumentRangeError,
  ArgumentTypeError,
  BlocksExhaustedError,
  BodyError,
  type BodyErrorCode,
  BookingConflictError,
  CapacityError,
  CopyError,
  type CopyErrorCode,
  CorePanicError,
  CoreUnavailableError,
  DisposedError,
  DuplicateCopyError,
  ForeignReservationError,
  GatewayError,
  type GatewayErrorCode,
  IdsExhaustedError,
  KvrouteError,
  MemoryLimitError,
  MissingPrefixError,
  NotBookedError,
  NotReferencedError,
  NoWorkerError,
  OptionError,
  QueueError,
  type QueueErrorCode,
  ReferencesExhaustedError,
  ReservationClosedError,
  ReservationExhaustedError,
  type SelectionLimitCode,
  SelectionLimitError,
  UnknownBookingError,
  UnknownCopyError,
  UnknownSelectionError,
  UnknownWorkerError,
  UpstreamError,
  type UpstreamErrorCode,
  WorkersBusyError,
  WorkersExhaustedError,
} from "./errors.js";
export type { BreakerOptions } from "./gateway/breaker.js";
export { HeaderList } from "./gateway/header-list.js";
export type { HealthOptions } from "./gateway/health-options.js";
export type { RetryOptions } from "./gateway/retry-options.js";
export {
  type Answer,
  type AnswerBody,
  createRouter,
  type GatewayRequest,
  type HandlerContext,
  type Outcome,
  type OutcomeCounts,
  type Receipt,
  type RequestRecord,
  type RouteCandidate,
  type RouteExplanation,
  type Router,
  type RouterOptions,
  type RouterStats,
  type RouterWarning,
  type RouterWorkerStats,
  type Upstream,
  type UpstreamRequest,
  type WorkerOptions,
} from "./gateway/router.js";
export type { StopSignal } from "./gateway/stop.js";
export {
  type PeekedSelection,
  type PendingSelection,
  type RoutingPartition,
  SelectionCache,
  type SelectionCacheOptions,
} from "./selection/cache.js";
export {
  type CacheAwareOptions,
  type Candidate,
  type CandidateLoad,
  type Choice,
  cacheAware,
  createPolicy,
  type DynamoOptions,
  dynamo,
  type KvOptions,
  type KvPreset,
  kv,
  leastLoaded,
  longestPrefix,
  POLICY_NAMES,
  type Policy,
  type PolicyContext,
  type PolicyName,
  type PolicyOptions,
  type PolicyTerms,
  type PrefixHashOptions,
  powerOfTwo,
  prefixHash,
  type RoutingRequest,
  random,
  roundRobin,
  type SessionPinOptions,
  sessionPin,
} from "./selection/policy.js";
export { type Held, HoldQueue, type HoldQueueOptions } from "./selection/queue.js";
export * from "./selection/service.js";
export { SessionTable, type SessionTableOptions } from "./selection/sessions.js";
export type {
  ReportedUsage,
  WorkerCatalog,
  WorkerCatalogOptions,
  WorkerLifecycle,
  WorkerRecord,
  WorkerRegistration,
  WorkerUpdate,
} from "./selection/workers.js";
