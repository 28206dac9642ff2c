/** What a feed has seen, since it was made and over all ranks. */
export interface KvFeedCounters {
  /** Batches that were applied. */
  batches: number;
  /** Batches that came again, after they were given up, or in a replay from before a restart. */
  duplicateBatches: number;
  /** Batches ahead of a gap for which there was no room; a later replay brings them. */
  refusedBatches: number;
  /** Batches that will never come: the engine no longer had them. */
  lostBatches: number;
  /** Starts of engines that were noticed by their numbers. */
  restarts: number;
  /** Events of a kind that is not known here. */
  unknownEvents: number;
  /** Events about blocks of other publishers. */
  remoteEvents: number;
  /** Events about groups of layers that do not need the whole prefix. */
  otherGroupEvents: number;
  /** Stored chains that name a block twice or as its own parent; they are dropped. */
  circularEvents: number;
  /** Stored chains in blocks of another size than the feed's; they are dropped. */
  blockSizeEvents: number;
  /** Blocks stored in memory other than the device's. */
  lowerTierBlocks: { host: number; disk: number; external: number; unknown: number };
  /** Blocks that tokens alone do not identify, such as those with images; they are not indexed. */
  opaqueBlocks: number;
  /** Blocks that went because the waiting room was full. */
  waitingBlocksDropped: number;
  /** Blocks that went, from the index as well, because `maxBlocks` were known. */
  blocksForgotten: number;
  /** Removals of blocks that were not known. */
  unknownRemovals: number;
}

export function createCounters(): KvFeedCounters {
  return {
    batches: 0,
    duplicateBatches: 0,
    refusedBatches: 0,
    lostBatches: 0,
    restarts: 0,
    unknownEvents: 0,
    remoteEvents: 0,
    otherGroupEvents: 0,
    circularEvents: 0,
    blockSizeEvents: 0,
    lowerTierBlocks: { host: 0, disk: 0, external: 0, unknown: 0 },
    opaqueBlocks: 0,
    waitingBlocksDropped: 0,
    blocksForgotten: 0,
    unknownRemovals: 0,
  };
}
