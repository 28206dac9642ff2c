import "./panic";
// What the facade of the pool calls: an entry of its own, so that the size of the pool alone can be told.
import { Status } from "../src/abi";
import { found, layouts, scratch, words } from "./layout";
import { inactive } from "./lru";
import * as pool from "./pool";
import { SLOT_NUMBERS } from "./slots";

export { panicCode, panicFile, panicLine } from "./panic";
export { pagesWanted } from "./layout";
export { seal } from "./slots";
export {
  activate,
  allocateCached,
  allocatePrivate,
  cache,
  cancel,
  detail,
  listInactive,
  makeScratch,
  match,
  release,
  reserve,
  reserveResident,
} from "./batch";
/** Opens the pool of this instance: once, for at least one block, in at most so many pages of memory. */
export function create(capacity: u32, pages: u32): i32 {
  assert(capacity >= 1 && capacity < SLOT_NUMBERS); // the facade checks what users pass
  const status = found(capacity, pages);
  if (status == Status.Ok) pool.open(capacity);
  return -status;
}

/** The address of the scratch page. */
export function scratchAddress(): usize {
  return scratch;
}

/** The length of the scratch page in words. */
export function scratchWords(): usize {
  return words;
}

/** Counts the changes of either. */
export function layoutCount(): u32 {
  return layouts;
}

/** Copies that somebody holds, and reserved room. */
export function numActive(): u32 {
  return pool.copies() - inactive + pool.reserved;
}

/** References of all copies; a pin is none. */
export function numReferences(): u32 {
  return pool.references;
}

/** Copies that may be evicted. */
export function numInactive(): u32 {
  return inactive;
}
