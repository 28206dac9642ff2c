export { LeastLoaded, type LeastLoadedOptions, type RankLoad } from "./placement/least-loaded.js";
export { SessionAffinity, type SessionAffinityOptions } from "./placement/session-affinity.js";
