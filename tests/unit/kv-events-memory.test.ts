import { encode } from "@msgpack/msgpack";
import { describe, expect, test } from "vitest";
import { type EngineHash, weighEvent } from "../../src/selection/events/event.js";
import { WaitingRoom, weighWaiting } from "../../src/selection/events/waiting.js";
import { decodeKvEvents, type KvStored } from "../../src/selection/events.js";
import { stored } from "../model/kv-event-stage.js";
import { retained } from "../support/heap.js";

/** Bytes that look like noise, 32 of them, as engines name blocks. */
function digest(number: number): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) => Math.imul(number * 32 + at + 1, 0x9e37_79b1) >>> 24);
}

const integer = (number: number): EngineHash => BigInt.asUintN(64, BigInt(number + 1) * 0x9e37_79b9_7f4a_7c15n);
const bytes = (number: number): EngineHash => `0x${Buffer.from(digest(number)).toString("hex")}`;

describe("what is kept takes about the memory that it is counted with, at most", () => {
  test("names of 32 bytes, which are kept for every block", () => {
    const count = 20_000;
    const payload = encode([1, [["BlockRemoved", Array.from({ length: count }, (_, number) => digest(number))]]]);
    const { made, bytes } = retained(() => decodeKvEvents(payload));
    expect(bytes / count).toBeLessThan(weighEvent(made.events[0] as KvStored) / count);
  });

  test.each([
    ["of one block named by an integer", 1, integer],
    ["of one block named by bytes", 1, bytes],
    ["of 64 blocks named by integers", 64, integer],
    ["of 64 blocks named by bytes", 64, bytes],
  ])("chains %s that wait for their parents", (_, blocks, name) => {
    const count = 64_000 / blocks / 8;
    const chain = (number: number) => {
      const hashes = Array.from({ length: blocks }, (_, at) => name(number * blocks + at));
      return stored(hashes, new Array<number>(blocks * 16).fill(7), {
        blockSize: 16,
        parentBlockHash: name(-number - 2),
      });
    };
    const { bytes } = retained(() => {
      const room = new WaitingRoom(Number.POSITIVE_INFINITY);
      for (let number = 0; number < count; number++) room.add(chain(number), name(-number - 2));
      return room;
    });
    expect(bytes / count).toBeLessThan(1.25 * weighWaiting(chain(0)));
  });
});
