import { type EventFields, readList, readOptionalText } from "./fields.js";

/** What stands beside the tokens in the identity of a stored chain. */
export interface Identity {
  readonly loraName: string | null;
  readonly cacheSalt: string | null;
  /** Leading blocks that tokens, adapter and salt identify. */
  readonly textBlocks: number;
}

/** The longest adapter name and salt that are kept, in UTF-16 units: clients choose salts, and every chain keeps its own. */
export const NAME_MAX = 1024;

/**
 * Finds adapter, salt and images of a stored chain in its fields and in its extra keys.
 *
 * vLLM lists extra keys block by block in a fixed order: the adapter's name, the images that the block touches, as
 * `[identifier, offset]` or in older versions as a bare identifier, the salt in the first block of a prompt only, and
 * hashes of embeddings as bytes. A bare text is therefore the adapter where the event says that there is one, else the
 * salt at the end of a prompt's first block, and an image anywhere else. Should an old engine's image be taken for a
 * salt, its blocks still match no prompt of text alone.
 */
export function readIdentity(fields: EventFields, blocks: number, isRoot: boolean): Identity {
  const entries = readEntries(fields.extra_keys, "extra_keys");
  const images = readEntries(fields.block_mm_infos, "block_mm_infos");
  const loraName = readText(fields.lora_name, "lora_name") ?? adapterOf(entries, fields.lora_id);
  const strangers = entries.map((entry) => withoutLeading(entry, loraName));
  const cacheSalt = readText(fields.cache_salt, "cache_salt") ?? (isRoot ? saltOf(strangers[0]) : null);
  if (isUnknownAdapter(fields.lora_id, loraName) || isTooLong(loraName) || isTooLong(cacheSalt)) {
    return { loraName: null, cacheSalt: null, textBlocks: 0 };
  }
  const foreign = strangers.findIndex((entry, at) => !isSaltAlone(entry, at, cacheSalt));
  const image = images.findIndex((entry) => entry.length > 0);
  const textBlocks = Math.min(blocks, foreign < 0 ? blocks : foreign, image < 0 ? blocks : image);
  return { loraName, cacheSalt, textBlocks };
}

type Entry = readonly unknown[];

/** Reads one list for each block; `null` is an empty one, anything but a list stands for a list of itself. */
function readEntries(value: unknown, field: string): readonly Entry[] {
  if (value === undefined || value === null) return [];
  return readList(value, field).map((entry) => {
    if (entry === undefined || entry === null) return [];
    return Array.isArray(entry) ? entry : [entry];
  });
}

/** Reads a text; an empty one is none. */
function readText(value: unknown, field: string): string | null {
  const text = readOptionalText(value, field);
  return text === "" ? null : text;
}

/** Gives the adapter's name from the extra keys of an event that says by number alone that there is an adapter. */
function adapterOf(entries: readonly Entry[], loraId: unknown): string | null {
  if (loraId === undefined || loraId === null) return null;
  const first = entries.find((entry) => entry.length > 0)?.[0];
  return typeof first === "string" && first !== "" ? first : null;
}

function isUnknownAdapter(loraId: unknown, loraName: string | null): boolean {
  return loraId !== undefined && loraId !== null && loraName === null;
}

function withoutLeading(entry: Entry, loraName: string | null): Entry {
  return loraName !== null && entry[0] === loraName ? entry.slice(1) : entry;
}

function saltOf(entry: Entry | undefined): string | null {
  const last = entry?.at(-1);
  return typeof last === "string" && last !== "" ? last : null;
}

function isSaltAlone(entry: Entry, block: number, cacheSalt: string | null): boolean {
  return entry.length === 0 || (entry.length === 1 && block === 0 && cacheSalt !== null && entry[0] === cacheSalt);
}

function isTooLong(name: string | null): boolean {
  return name !== null && name.length > NAME_MAX;
}
