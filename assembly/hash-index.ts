import { Slot, nil, some } from "./slots";

// The index: from a hash to the slot of its oldest copy. Open addressing in buckets of one cache line:
//
//   0          12         16                                  64
//   ├─ 12 tags ┼─ passed ─┼─ 12 slot addresses ───────────────┤
//
// tag: eight bits of the mixed hash, never 0; 0 is an empty place. All twelve are compared at once.
// passed: how many entries wanted this bucket or one before it, found it full and went on. While it is 0 a search ends
//   here, so removing an entry needs neither tombstones nor shifting: it clears the tag and takes back its own passes.
// The hash itself stands in the slot, which a hit reads anyway; a miss reads one line of the index and nothing else.

@inline const BUCKET_BYTES: usize = 64;
@inline const PLACES: u32 = 12;
@inline const PLACES_MASK: i32 = (1 << PLACES) - 1;
@inline const PASSED: usize = 12;
@inline const ADDRESSES: usize = 16;
if (PASSED != PLACES || ADDRESSES + PLACES * sizeof<Slot>() != BUCKET_BYTES) ERROR("A bucket is one cache line");

/** Buckets are as many as this many slots each need, rounded up to a power of two: 4 to 8 of 12 places are taken. */
@inline const SLOTS_PER_BUCKET: u32 = 8;

// 2 ** 64 divided by the golden ratio: its multiples spread evenly (Knuth, TAOCP 3, 6.4).
@inline const GOLDEN: u64 = 0x9e3779b97f4a7c15;

let table: usize = 0;
let mask: usize = 0; // of byte offsets: (buckets - 1) * BUCKET_BYTES
/** How many hashes have an entry. */
export let entries: u32 = 0;

/** The bytes that an index for so many slots takes. */
export function indexBytes(slots: u32): usize {
  let buckets: usize = 1;
  while (buckets * SLOTS_PER_BUCKET < slots) buckets <<= 1;
  return buckets * BUCKET_BYTES;
}

/** Makes the index empty, at an address aligned to a cache line and of a size that `indexBytes` gave. */
export function placeIndex(address: usize, bytes: usize): void {
  assert((address & (BUCKET_BYTES - 1)) == 0 && (bytes & (bytes - 1)) == 0); // no bucket straddles a line
  table = address;
  mask = bytes - BUCKET_BYTES;
  entries = 0;
  memory.fill(address, 0, bytes);
}

// The upper half of a hash is folded in first: a product alone would let it decide the upper bits only.
@inline function mix(hash: u64): u64 {
  return (hash ^ (hash >> 32)) * GOLDEN;
}

// The bucket comes from the upper half of the product, where every bit of the hash has had its say, the tag from the
// byte beside it.
@inline function bucketOf(mixed: u64): usize {
  return table + ((<usize>(mixed >> 32) * BUCKET_BYTES) & mask);
}

@inline function tagOf(mixed: u64): u32 {
  const tag = <u32>(mixed >> 24) & 0xff;
  return tag + <u32>(tag == 0);
}

@inline function following(bucket: usize): usize {
  return table + ((bucket - table + BUCKET_BYTES) & mask);
}

/** A bit for each place of the bucket that has the tag. */
@inline function places(bucket: usize, tag: u32): i32 {
  return i8x16.bitmask(i8x16.eq(v128.load(bucket), i8x16.splat(<i8>tag))) & PLACES_MASK;
}

@inline function passed(bucket: usize): u32 {
  return load<u32>(bucket, PASSED);
}

@inline function pass(bucket: usize, change: i32): void {
  store<u32>(bucket, passed(bucket) + change, PASSED);
}

@inline function slotAt(bucket: usize, place: i32): Slot {
  return load<Slot>(bucket + (<usize>place << alignof<Slot>()), ADDRESSES);
}

@inline function putSlot(bucket: usize, place: i32, slot: Slot): void {
  store<Slot>(bucket + (<usize>place << alignof<Slot>()), slot, ADDRESSES);
}

/** The oldest copy of a hash, or nil. */
@inline export function find(hash: u64): Slot {
  const mixed = mix(hash);
  const tag = tagOf(mixed);
  let bucket = bucketOf(mixed);
  while (true) {
    for (let found = places(bucket, tag); found != 0; found &= found - 1) {
      const slot = slotAt(bucket, ctz(found));
      if (slot.hash == hash) return slot;
    }
    if (passed(bucket) == 0) return nil();
    bucket = following(bucket);
  }
}

/** The oldest copy of the hash of a copy; or nil, and then the hash has an entry now, which names the copy. */
@inline export function findOrInsert(slot: Slot): Slot {
  const mixed = mix(slot.hash);
  const tag = tagOf(mixed);
  const bucket = bucketOf(mixed);
  if (passed(bucket) != 0) return findOrInsertFar(slot);
  for (let found = places(bucket, tag); found != 0; found &= found - 1) {
    const other = slotAt(bucket, ctz(found));
    if (other.hash == slot.hash) return other;
  }
  const free = places(bucket, 0);
  if (free == 0) return findOrInsertFar(slot);
  put(bucket, ctz(free), tag, slot);
  return nil();
}

// The same where the entry may stand, or has to go, beyond its first bucket.
function findOrInsertFar(slot: Slot): Slot {
  const oldest = find(slot.hash);
  if (!some(oldest)) insert(slot);
  return oldest;
}

/** Adds the hash of a copy; it has no entry yet. There is always room: the places are at least 1.5 times the slots. */
export function insert(slot: Slot): void {
  const mixed = mix(slot.hash);
  let bucket = bucketOf(mixed);
  let free = places(bucket, 0);
  while (free == 0) {
    pass(bucket, 1);
    bucket = following(bucket);
    free = places(bucket, 0);
  }
  put(bucket, ctz(free), tagOf(mixed), slot);
}

@inline function put(bucket: usize, place: i32, tag: u32, slot: Slot): void {
  store<u8>(bucket + <usize>place, <u8>tag);
  putSlot(bucket, place, slot);
  entries++;
}

/** Removes the entry that names a copy. */
@inline export function erase(slot: Slot): void {
  const mixed = mix(slot.hash);
  const tag = tagOf(mixed);
  let bucket = bucketOf(mixed);
  let place = placeOf(bucket, tag, slot);
  while (place < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    pass(bucket, -1);
    bucket = following(bucket);
    place = placeOf(bucket, tag, slot);
  }
  store<u8>(bucket + <usize>place, 0);
  entries--;
}

/** Lets the entry that names a copy name another of the same hash. */
export function rename(from: Slot, to: Slot): void {
  const mixed = mix(from.hash);
  const tag = tagOf(mixed);
  let bucket = bucketOf(mixed);
  let place = placeOf(bucket, tag, from);
  while (place < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    bucket = following(bucket);
    place = placeOf(bucket, tag, from);
  }
  putSlot(bucket, place, to);
}

// The place of a copy in a bucket, or -1. The copy itself is not read.
@inline function placeOf(bucket: usize, tag: u32, slot: Slot): i32 {
  for (let found = places(bucket, tag); found != 0; found &= found - 1) {
    const place = ctz(found);
    if (slotAt(bucket, place) == slot) return place;
  }
  return -1;
}

/** The sum of the passes of all buckets, for `verify`: every entry accounts for its distance from its first choice. */
export function passes(): u32 {
  let sum: u32 = 0;
  for (let bucket = table; bucket <= table + mask; bucket += BUCKET_BYTES) sum += passed(bucket);
  return sum;
}

/** How many buckets the entry that names a copy passed before it found a place, for `verify`. */
export function distanceOf(slot: Slot): u32 {
  const mixed = mix(slot.hash);
  let bucket = bucketOf(mixed);
  let distance: u32 = 0;
  while (placeOf(bucket, tagOf(mixed), slot) < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    bucket = following(bucket);
    distance++;
  }
  return distance;
}
