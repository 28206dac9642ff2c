// Hash tables from a key of 64 bits to the record that holds it, as its first field. Open addressing in buckets of one
// cache line:
//
//   0          12         16                                  64
//   ├─ 12 tags ┼─ passed ─┼─ 12 record addresses ─────────────┤
//
// tag: eight bits of the mixed key, never 0; 0 is an empty place. All twelve are compared at once.
// passed: how many entries wanted this bucket or one before it, found it full and went on. While it is 0 a search ends
//   here, so removing an entry needs neither tombstones nor shifting: it clears the tag and takes back its own passes.
// The key itself stands in the record, which a hit reads anyway; a miss reads one line of the table and nothing else.
//
// A table is its address and a mask of byte offsets: (buckets - 1) * BUCKET_BYTES. Whoever has one keeps both in globals
// and passes them on; what is called in loops is compiled into its callers.

@inline const BUCKET_BYTES: usize = 64;
@inline const PLACES: u32 = 12;
@inline const PLACES_MASK: i32 = (1 << PLACES) - 1;
@inline const PASSED: usize = 12;
@inline const ADDRESSES: usize = 16;
@inline const ADDRESS_SHIFT: usize = 2;
if (PASSED != PLACES || ADDRESSES + ((<usize>PLACES) << ADDRESS_SHIFT) != BUCKET_BYTES) ERROR("A bucket is one cache line");

/** Buckets are as many as this many records each need, rounded up to a power of two: 4 to 8 of 12 places are taken. */
@inline const RECORDS_PER_BUCKET: u32 = 8;

// 2 ** 64 divided by the golden ratio: its multiples spread evenly (Knuth, TAOCP 3, 6.4).
@inline const GOLDEN: u64 = 0x9e3779b97f4a7c15;

/** The bytes that a table for so many records takes. */
export function tableBytes(records: u32): usize {
  let buckets: usize = 1;
  while (buckets * RECORDS_PER_BUCKET < records) buckets <<= 1;
  return buckets * BUCKET_BYTES;
}

/** Empties a table at an address aligned to a cache line, of a size that `tableBytes` gave. Returns its mask. */
export function emptyTable(table: usize, bytes: usize): usize {
  assert((table & (BUCKET_BYTES - 1)) == 0 && (bytes & (bytes - 1)) == 0); // no bucket straddles a line
  memory.fill(table, 0, bytes);
  return bytes - BUCKET_BYTES;
}

@inline function keyOf(record: usize): u64 {
  return load<u64>(record);
}

// The upper half of a key is folded in first: a product alone would let it decide the upper bits only.
@inline function mix(key: u64): u64 {
  return (key ^ (key >> 32)) * GOLDEN;
}

// The bucket comes from the upper half of the product, where every bit of the key has had its say, the tag from the
// byte beside it.
@inline function bucketOf(table: usize, mask: usize, mixed: u64): usize {
  return table + ((<usize>(mixed >> 32) * BUCKET_BYTES) & mask);
}

@inline function tagOf(mixed: u64): u32 {
  const tag = <u32>(mixed >> 24) & 0xff;
  return tag + <u32>(tag == 0);
}

@inline function following(table: usize, mask: usize, bucket: usize): usize {
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

@inline function recordAt(bucket: usize, place: i32): usize {
  return load<usize>(bucket + (<usize>place << ADDRESS_SHIFT), ADDRESSES);
}

@inline function putRecord(bucket: usize, place: i32, record: usize): void {
  store<usize>(bucket + (<usize>place << ADDRESS_SHIFT), record, ADDRESSES);
}

/** The record of a key, or 0. */
@inline export function lookUp(table: usize, mask: usize, key: u64): usize {
  const mixed = mix(key);
  const tag = tagOf(mixed);
  let bucket = bucketOf(table, mask, mixed);
  while (true) {
    for (let found = places(bucket, tag); found != 0; found &= found - 1) {
      const record = recordAt(bucket, ctz(found));
      if (keyOf(record) == key) return record;
    }
    if (passed(bucket) == 0) return 0;
    bucket = following(table, mask, bucket);
  }
}

/**
 * The record of the key of a record, and its own address where the key had no record before; or 0 where it takes more
 * than the first bucket to tell, and then nothing has changed.
 */
@inline export function lookUpOrAddNear(table: usize, mask: usize, record: usize): usize {
  const key = keyOf(record);
  const mixed = mix(key);
  const tag = tagOf(mixed);
  const bucket = bucketOf(table, mask, mixed);
  if (passed(bucket) != 0) return 0;
  for (let found = places(bucket, tag); found != 0; found &= found - 1) {
    const other = recordAt(bucket, ctz(found));
    if (keyOf(other) == key) return other;
  }
  const free = places(bucket, 0);
  if (free == 0) return 0;
  put(bucket, ctz(free), tag, record);
  return record;
}

/** Adds a record whose key has none yet. There is always room: the places are at least 1.5 times the records. */
export function add(table: usize, mask: usize, record: usize): void {
  const mixed = mix(keyOf(record));
  let bucket = bucketOf(table, mask, mixed);
  let free = places(bucket, 0);
  while (free == 0) {
    pass(bucket, 1);
    bucket = following(table, mask, bucket);
    free = places(bucket, 0);
  }
  put(bucket, ctz(free), tagOf(mixed), record);
}

@inline function put(bucket: usize, place: i32, tag: u32, record: usize): void {
  store<u8>(bucket + <usize>place, <u8>tag);
  putRecord(bucket, place, record);
}

/** Removes a record that is there. */
@inline export function takeOut(table: usize, mask: usize, record: usize): void {
  const mixed = mix(keyOf(record));
  const tag = tagOf(mixed);
  let bucket = bucketOf(table, mask, mixed);
  let place = placeOf(bucket, tag, record);
  while (place < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    pass(bucket, -1);
    bucket = following(table, mask, bucket);
    place = placeOf(bucket, tag, record);
  }
  store<u8>(bucket + <usize>place, 0);
}

/** Puts a record in the place of another with the same key. */
@inline export function replace(table: usize, mask: usize, from: usize, to: usize): void {
  const mixed = mix(keyOf(from));
  const tag = tagOf(mixed);
  let bucket = bucketOf(table, mask, mixed);
  let place = placeOf(bucket, tag, from);
  while (place < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    bucket = following(table, mask, bucket);
    place = placeOf(bucket, tag, from);
  }
  putRecord(bucket, place, to);
}

// The place of a record in a bucket, or -1. The record itself is not read.
@inline function placeOf(bucket: usize, tag: u32, record: usize): i32 {
  for (let found = places(bucket, tag); found != 0; found &= found - 1) {
    const place = ctz(found);
    if (recordAt(bucket, place) == record) return place;
  }
  return -1;
}

/** The sum of the passes of all buckets, for `verify`: every entry accounts for its distance from its first choice. */
export function passesIn(table: usize, mask: usize): u32 {
  let sum: u32 = 0;
  for (let bucket = table; bucket <= table + mask; bucket += BUCKET_BYTES) sum += passed(bucket);
  return sum;
}

/** How many buckets a record that is there passed before it found a place, for `verify`. */
export function distanceIn(table: usize, mask: usize, record: usize): u32 {
  const mixed = mix(keyOf(record));
  let bucket = bucketOf(table, mask, mixed);
  let distance: u32 = 0;
  while (placeOf(bucket, tagOf(mixed), record) < 0) {
    assert(passed(bucket) > 0); // an entry that is not here has passed by
    bucket = following(table, mask, bucket);
    distance++;
  }
  return distance;
}
