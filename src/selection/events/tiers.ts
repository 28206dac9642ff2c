/** Kinds of memory that blocks are kept in. Only blocks on the device are indexed. */
export type Tier = "device" | "host" | "disk" | "external" | "unknown";

/** The mediums of vLLM, SGLang and Dynamo. */
const TIERS: ReadonlyMap<string, Tier> = new Map([
  ["GPU", "device"],
  ["DEVICE", "device"],
  ["CPU", "host"],
  ["CPU_PINNED", "host"],
  ["CPU_TIER1", "host"],
  ["CPU_TIER2", "disk"],
  ["DISK", "disk"],
  ["NVME", "disk"],
  ["STORAGE", "disk"],
  ["EXTERNAL", "external"],
  ["NETWORK", "external"],
  ["REMOTE", "external"],
  ["SHARED", "external"],
]);

/** Gives the tier of a medium; engines that know one medium only do not name it. */
export function tierOf(medium: string | null): Tier {
  return medium === null ? "device" : (TIERS.get(medium.toUpperCase()) ?? "unknown");
}

/** Tells whether an event speaks of blocks that are not the publisher's own. */
export function isElsewhere(locality: string | null | undefined): boolean {
  return locality !== null && locality !== undefined && locality !== "LOCAL";
}

/** Kinds of attention that need the whole prefix, so that the blocks of one group tell how much of a prompt is held. */
const WHOLE_PREFIX: ReadonlySet<string> = new Set(["full_attention", "mla_attention", "sink_full_attention"]);

/** Groups of layers to remember for each rank; models have a handful. Blocks of others are not indexed. */
export const GROUPS_MAX = 64;

interface Group {
  readonly groupIdx: number | null;
  readonly specKind?: string | null | undefined;
  readonly slidingWindow?: number | null | undefined;
}

/**
 * Tells the groups whose blocks are indexed from those that are not, and learns them: a removal names its group alone.
 *
 * A model that mixes kinds of attention announces each block once for each group, under the same hash. Where an engine
 * never names the kind, the first group counts.
 */
export class GroupFilter {
  readonly #whole = new Map<number, boolean>();

  /** Tells whether an event speaks of a group that needs the whole prefix. */
  admits({ groupIdx, specKind, slidingWindow }: Group): boolean {
    if (specKind === null || specKind === undefined) {
      if (slidingWindow !== null && slidingWindow !== undefined) return false;
      return groupIdx === null || (this.#whole.get(groupIdx) ?? groupIdx === 0);
    }
    const whole = WHOLE_PREFIX.has(specKind);
    if (groupIdx === null) return whole;
    if (this.#whole.size >= GROUPS_MAX && !this.#whole.has(groupIdx)) return false; // its removals would go unheard
    this.#whole.set(groupIdx, whole);
    return whole;
  }

  forget(): void {
    this.#whole.clear();
  }
}
