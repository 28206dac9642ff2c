import "./panic";
// The entry of the core that ships. An instance holds one pool or one index, or it hashes.
export * from "./core-pool";
export {
  clearHolder,
  createIndex,
  numBlocks,
  numEntries,
  numEvicted,
  numExpired,
  removeBlocks,
  removeHolder,
  storeBlocks,
} from "./prefix-batch";
export { overlap } from "./prefix-overlap";
export {
  hashBlocks,
  hashBlocksMax,
  hashEnd,
  hashPart,
  hashWindow,
  hashWindowBytes,
  hashWords,
} from "./token-hash";
