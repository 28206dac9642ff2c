/** KV events of engines. */
export {
  ArgumentRangeError,
  ArgumentTypeError,
  KvEventError,
  type KvEventErrorCode,
  KvrouteError,
  OptionError,
} from "../errors.js";
export type { KvEventIndex, TokenHasher } from "./events/cache-view.js";
export type { KvFeedCounters } from "./events/counters.js";
export { decodeKvEvents } from "./events/decode.js";
export type { EngineHash, KvCleared, KvEvent, KvEventBatch, KvRemoved, KvStored } from "./events/event.js";
export {
  KvEventFeed,
  type KvEventFeedOptions,
  type KvFeedStatus,
  type NumberedBatch,
  type ReplayRequest,
} from "./events/feed.js";
export type { CachedTokens } from "./events/prediction.js";
export type { KvFeedState } from "./events/rank-feed.js";
