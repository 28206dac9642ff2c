import "./panic";
// The entry of the core that ships. An instance holds one pool, one index or one table of booked blocks, or it hashes.
export * from "./core-pool";
export { book, countSole, settleAll } from "./booked-batch";
export { potential } from "./booked-potential";
export {
  clearHolder,
  createIndex,
  limitHolder,
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
