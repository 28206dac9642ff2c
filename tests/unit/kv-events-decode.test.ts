import { ExtData, encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KvEventError } from "../../src/errors.js";
import { NAME_MAX } from "../../src/selection/events/identity.js";
import { DEPTH_MAX } from "../../src/selection/events/msgpack.js";
import { decodeKvEvents, type KvEvent, type KvRemoved, type KvStored } from "../../src/selection/events.js";
import { scaled } from "../support/scale.js";

const pack = (value: unknown) => encode(value, { useBigInt64: true });
const decodeEvent = (event: unknown): KvEvent | undefined => decodeKvEvents(pack([1, [event]])).events[0];
const decodeStored = (event: unknown): KvStored => decodeEvent(event) as KvStored;
const decodeRemoved = (event: unknown): KvRemoved => decodeEvent(event) as KvRemoved;

function errorOf(payload: Uint8Array): KvEventError {
  try {
    decodeKvEvents(payload);
  } catch (error) {
    if (error instanceof KvEventError) return error;
    throw error;
  }
  throw new Error("Expected an error.");
}

const head = ["BlockStored", [1n, 2n], null, [1, 2, 3, 4], 2];
const map = { type: "BlockStored", block_hashes: [1n], parent_block_hash: null, token_ids: [1, 2], block_size: 2 };

describe("an error", () => {
  test.each<[string, unknown, string]>([
    ["a batch that is a number", 5, "batch"],
    ["a time that is a text", ["now", []], "ts"],
    ["a time that is not finite", [Number.NaN, []], "ts"],
    ["a rank beyond 65,535", [1, [], 65_536], "data_parallel_rank"],
    ["an event that is a number", [1, [5]], "events[0]"],
    ["a tag that is a number", [1, [["AllBlocksCleared"], [5]]], "events[1].type"],
    ["hashes that are no list", [1, [["BlockRemoved", 5n]]], "block_hashes"],
    ["a hash that is a text", [1, [["BlockRemoved", [1n, "x"]]]], "block_hashes[1]"],
    ["a hash of no bytes", [1, [["BlockRemoved", [new Uint8Array(0)]]]], "block_hashes[0]"],
    ["a hash of 65 bytes", [1, [["BlockRemoved", [new Uint8Array(65)]]]], "block_hashes[0]"],
    ["a medium that is a number", [1, [[...head, null, 5]]], "medium"],
    ["a token that is a text", [1, [["BlockStored", [1n], null, [1, "x"], 2]]], "token_ids[1]"],
    ["a group below 0", [1, [["BlockRemoved", [1n], null, -1]]], "group_idx"],
    ["extra keys that are no list", [1, [[...head, null, null, null, "x"]]], "extra_keys"],
  ])("names the field: %s", (_, batch, field) => {
    const error = errorOf(pack(batch));
    expect(error).toMatchObject({ code: "KVROUTE_KV_EVENT_FIELD", field });
    expect(error.message).toContain(`Expected field "${field}" to be `);
  });

  test("says that a required field of the tagged form is missing", () => {
    for (const field of ["block_hashes", "parent_block_hash", "token_ids", "block_size"]) {
      const { [field]: _, ...rest } = map as Record<string, unknown>;
      expect(errorOf(pack([1, [rest]])).message).toContain(`Expected field "${field}" to be `);
    }
  });

  test("quotes no more than the beginning of a long text", () => {
    expect(errorOf(pack(["x".repeat(1_000_000), []])).message.length).toBeLessThan(200);
  });
});

describe("bytes", () => {
  test(`are read down to ${DEPTH_MAX} levels, and no further`, () => {
    const nest = (levels: number) => Uint8Array.of(...new Array<number>(levels).fill(0x91), 0xc0);
    expect(errorOf(nest(DEPTH_MAX)).code).toBe("KVROUTE_KV_EVENT_FIELD");
    expect(errorOf(nest(DEPTH_MAX + 1)).code).toBe("KVROUTE_KV_EVENT_PAYLOAD");
  });

  test("that claim much more than there is are refused before anything is made, however they are nested", () => {
    const claims = new Array<number[]>(DEPTH_MAX).fill([0xdd, 0x00, 0x0f, 0xff, 0xff]).flat();
    const before = process.memoryUsage().heapUsed;
    for (let round = 0; round < 100; round++)
      expect(errorOf(Uint8Array.from(claims)).code).toBe("KVROUTE_KV_EVENT_PAYLOAD");
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 2 ** 20);
  });

  test("of every kind that msgpack knows are walked over as they are decoded", () => {
    const anything = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc.oneof(
          fc.constantFrom(null, true, false),
          fc.integer(),
          fc.double(),
          fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
          fc.string({ maxLength: 300, size: "max" }),
          fc.uint8Array({ maxLength: 300, size: "max" }),
          fc.date({ noInvalidDate: true, min: new Date(0) }),
          fc.uint8Array({ maxLength: 300, size: "max" }).map((bytes) => new ExtData(5, bytes)),
        ),
        fc.array(tie("value"), { maxLength: 17 }),
        fc.dictionary(
          fc.string().filter((key) => key !== "__proto__"),
          tie("value"),
          { maxKeys: 17 },
        ),
      ),
    })).value;
    // Behind an unknown tag, anything may stand; the known event at the end is found only if all of it was walked over.
    const property = fc.property(anything, (value) => {
      const { events, ignored } = decodeKvEvents(pack([1, [["Unknown", value], ["AllBlocksCleared"]]]));
      expect(events).toEqual([{ type: "cleared" }]);
      expect(ignored).toBe(1);
    });
    fc.assert(property, { numRuns: scaled(100) });
  });

  test("at random are decoded or refused by a typed error", () => {
    const good = pack([1.5, [[...head, 7, "GPU", "sql", [["sql"], null], 0, "full_attention", null]], 0]);
    const property = fc.property(
      fc.nat(good.length - 1),
      fc.nat(255),
      fc.uint8Array({ maxLength: 8 }),
      (at, byte, more) => {
        const bytes = Uint8Array.of(...good, ...more);
        bytes[at] = byte;
        try {
          decodeKvEvents(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(KvEventError);
        }
      },
    );
    fc.assert(property, { numRuns: scaled(3_000) });
  });

  test("behind the value are refused, and the message says where it ends", () => {
    expect(errorOf(Uint8Array.of(0x92, 0x01, 0x90, 0xc0, 0xc0))).toMatchObject({
      code: "KVROUTE_KV_EVENT_PAYLOAD",
      message: "Expected a payload of one value, which ends at byte 3, got 5 bytes.",
    });
  });

  test("that are no bytes are an argument of the wrong type", () => {
    expect(() => decodeKvEvents("x" as unknown as Uint8Array)).toThrow("Expected payload to be a Uint8Array");
  });
});

describe("an event", () => {
  test("may stand in the tagged form inside a batch in the array form, and the other way round", () => {
    expect(decodeKvEvents(pack([1, [{ type: "AllBlocksCleared" }]])).events).toEqual([{ type: "cleared" }]);
    expect(decodeKvEvents(pack({ ts: 1, events: [["AllBlocksCleared"]] })).events).toEqual([{ type: "cleared" }]);
  });

  test("names its group, its kind and its locality at the end, in any of the forms of the array", () => {
    const group = (...tail: unknown[]) => decodeStored([...head, null, "GPU", null, null, ...tail]);
    expect(group(2, "mamba", null)).toMatchObject({ groupIdx: 2, specKind: "mamba", slidingWindow: null });
    expect(group([null, null], 2, "mamba", 5)).toMatchObject({
      groupIdx: 2,
      specKind: "mamba",
      slidingWindow: 5,
      textBlocks: 2,
    });
    expect(group(null, 2, "mamba", 5)).toMatchObject({ groupIdx: 2, specKind: "mamba", slidingWindow: 5 });
    expect(group(null, null, 5)).toMatchObject({ groupIdx: null, specKind: null, slidingWindow: 5 });
    expect(group(2, 5)).toMatchObject({ groupIdx: 2, specKind: null, slidingWindow: 5 });
    expect(decodeRemoved(["BlockRemoved", [1n], "GPU", 3, 5])).toMatchObject({ groupIdx: 3, slidingWindow: 5 });
    expect(group(2, "mamba", null, "REMOTE")).toMatchObject({ groupIdx: 2, specKind: "mamba", locality: "REMOTE" });
    expect(decodeRemoved(["BlockRemoved", [1n], "GPU", 3, "mamba", 5])).toMatchObject({
      groupIdx: 3,
      specKind: "mamba",
      slidingWindow: 5,
    });
    expect(decodeRemoved(["BlockRemoved", [1n], "GPU", 3, "REMOTE"])).toMatchObject({
      groupIdx: 3,
      locality: "REMOTE",
    });
  });

  test("may leave tokens and block size out where it speaks of a lower tier or of other publishers", () => {
    expect(decodeStored(["BlockStored", [1n, 2n], null, [], 0, null, "CPU"])).toMatchObject({
      medium: "CPU",
      blockSize: 0,
    });
    expect(decodeStored(["BlockStored", [1n, 2n], null, [], 16, null, "CPU"])).toMatchObject({ blockSize: 16 });
    expect(decodeStored({ ...map, token_ids: [], block_size: 0, locality: "REMOTE" })).toMatchObject({
      locality: "REMOTE",
    });
    expect(errorOf(pack([1, [["BlockStored", [1n, 2n], null, [], 2, null, "GPU"]]])).field).toBe("token_ids");
    expect(errorOf(pack([1, [{ ...map, token_ids: [], block_size: 0, locality: "LOCAL" }]])).field).toBe("block_size");
  });

  test("may give each token together with the next one", () => {
    expect(
      decodeStored([
        "BlockStored",
        [1n],
        null,
        [
          [7, 8],
          [8, 9],
        ],
        2,
      ]).tokenIds,
    ).toEqual(Uint32Array.of(7, 8));
  });
});

describe("extra keys", () => {
  const identity = (rest: Record<string, unknown>) => {
    const event = {
      type: "BlockStored",
      block_hashes: [1n, 2n, 3n],
      parent_block_hash: null,
      token_ids: [1, 2, 3],
      block_size: 1,
    };
    const { loraName, cacheSalt, textBlocks } = decodeStored({ ...event, ...rest });
    return [loraName, cacheSalt, textBlocks];
  };

  test.each<[string, Record<string, unknown>, readonly [string | null, string | null, number]]>([
    ["none", {}, [null, null, 3]],
    ["of no block", { extra_keys: [null, [], null] }, [null, null, 3]],
    ["an adapter", { lora_name: "sql", extra_keys: [["sql"], ["sql"], ["sql"]] }, ["sql", null, 3]],
    ["an adapter known by its number", { lora_id: 3, extra_keys: [["sql"], ["sql"], ["sql"]] }, ["sql", null, 3]],
    ["an adapter without any name", { lora_id: 3 }, [null, null, 0]],
    ["a salt at the start of a prompt", { extra_keys: [["s"], null, null] }, [null, "s", 3]],
    ["an adapter and a salt", { lora_name: "sql", extra_keys: [["sql", "s"], ["sql"], ["sql"]] }, ["sql", "s", 3]],
    [
      "a salt that is named like the adapter",
      { lora_name: "x", extra_keys: [["x", "x"], ["x"], ["x"]] },
      ["x", "x", 3],
    ],
    ["a salt in its own field", { cache_salt: "s", extra_keys: [["s"], null, null] }, [null, "s", 3]],
    ["a salt of no letters", { cache_salt: "", lora_name: "" }, [null, null, 3]],
    ["an image in the second block", { extra_keys: [null, [["img", -2]], null] }, [null, null, 1]],
    ["an image and a salt in the first block", { extra_keys: [[["img", 0], "s"], null, null] }, [null, "s", 0]],
    ["an image by its name alone", { extra_keys: [null, ["img"], null] }, [null, null, 1]],
    ["embeddings", { extra_keys: [null, null, [new Uint8Array(32)]] }, [null, null, 2]],
    ["a text behind a parent", { parent_block_hash: 9n, extra_keys: [["s"], null, null] }, [null, null, 0]],
    ["images in a field of their own", { block_mm_infos: [null, null, { mm_objects: [] }] }, [null, null, 2]],
    ["a salt as long as can be", { cache_salt: "s".repeat(NAME_MAX) }, [null, "s".repeat(NAME_MAX), 3]],
    ["a salt that is too long", { cache_salt: "s".repeat(NAME_MAX + 1) }, [null, null, 0]],
    ["a name that is too long", { lora_name: "s".repeat(NAME_MAX + 1) }, [null, null, 0]],
  ])("%s", (_, fields, expected) => expect(identity(fields)).toEqual(expected));
});
