import { describe, expect, test } from "vitest";
import type { Envelope } from "../../src/transport/types.js";
import type { OpenWorld } from "./transport.js";
import { connectOnceFree, idsOf, letter, take, takeAll } from "./world.js";

export function refusalContract(open: OpenWorld): void {
  describe("what is refused", () => {
    test("a destination that nobody is connected under", async () => {
      const world = await open();
      const transport = await world.connect(1);
      const error = { code: "KVROUTE_TRANSPORT_UNKNOWN_RANK", message: expect.stringContaining("77") };
      await expect(transport.send(letter(77, 0))).rejects.toMatchObject(error);
    });

    test("an envelope of more bytes than may be, and none of as many as may be", async () => {
      const world = await open({ maxEnvelopeBytes: 100 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const tooLarge = source.send(letter(2, 0, new Uint8Array(101)));
      await expect(tooLarge).rejects.toMatchObject({
        code: "KVROUTE_TRANSPORT_TOO_LARGE",
        message: "Expected an envelope of at most 100 bytes, the transport's maxEnvelopeBytes, got 101.",
      });
      await source.send(letter(2, 1, new Uint8Array(100)));
      expect(idsOf(await take(destination, 1))).toEqual([1]);
    });

    test.each<[string, object, string]>([
      ["a destination above 32 bits", { destination: 2 ** 32 }, "KVROUTE_ARGUMENT_RANGE"],
      ["a destination that is no number", { destination: 2n }, "KVROUTE_ARGUMENT_TYPE"],
      ["a negative tag", { tag: -1 }, "KVROUTE_ARGUMENT_RANGE"],
      ["a router that is no whole number", { router: 0.5 }, "KVROUTE_ARGUMENT_RANGE"],
      ["a request id above 64 bits", { requestId: 2n ** 64n }, "KVROUTE_ARGUMENT_RANGE"],
      ["a negative request id", { requestId: -1n }, "KVROUTE_ARGUMENT_RANGE"],
      ["a request id that is a number", { requestId: 1 }, "KVROUTE_ARGUMENT_TYPE"],
      ["a sequence above 32 bits", { sequence: 2 ** 32 }, "KVROUTE_ARGUMENT_RANGE"],
      ["no sequence", { sequence: undefined }, "KVROUTE_ARGUMENT_TYPE"],
      ["bytes that are a list", { bytes: [1] }, "KVROUTE_ARGUMENT_TYPE"],
    ])("%s", async (_, fields, code) => {
      const world = await open();
      const transport = await world.connect(1);
      await expect(transport.send({ ...letter(1, 0), ...fields } as Omit<Envelope, "source">)).rejects.toMatchObject({
        code,
      });
      await transport.send(letter(1, 5));
      expect(idsOf(await take(transport, 1))).toEqual([5]);
    });

    test("a second iteration while one is open, but not after it", async () => {
      const world = await open();
      const transport = await world.connect(1);
      const first = transport.receive()[Symbol.asyncIterator]();
      expect(() => transport.receive()[Symbol.asyncIterator]()).toThrow(
        expect.objectContaining({ code: "KVROUTE_TRANSPORT_RECEIVING" }),
      );
      const waiting = first.next();
      await expect(first.next()).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_RECEIVING" });
      await first.return?.();
      expect(await waiting).toEqual({ done: true, value: undefined });
      expect(await first.next()).toEqual({ done: true, value: undefined });
      await transport.send(letter(1, 1));
      expect(idsOf(await take(transport, 1))).toEqual([1]);
    });

    test("nothing, by the signal of a receiver: it ends the iteration and loses nothing", async () => {
      const world = await open();
      const transport = await world.connect(1);
      const stop = new AbortController();
      const waiting = (async () => {
        const taken: Envelope[] = [];
        for await (const envelope of transport.receive({ signal: stop.signal })) taken.push(envelope);
        return taken;
      })();
      stop.abort();
      expect(await waiting).toEqual([]);
      await transport.send(letter(1, 1));
      for await (const _ of transport.receive({ signal: stop.signal })) expect.unreachable();
      expect(idsOf(await take(transport, 1))).toEqual([1]);
    });

    test("a rank that is taken, and not one that is free again", async () => {
      const world = await open();
      const first = await world.connect(1);
      await expect(world.connect(1)).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_REFUSED" });
      await first.send(letter(1, 1)); // the first is as it was
      expect(idsOf(await take(first, 1))).toEqual([1]);
      await first.close();
      const second = await connectOnceFree(world, 1);
      await second.close();
      expect(await takeAll(second)).toEqual([]);
    });

    test("more ranks than may be", async () => {
      const world = await open({ maxRanks: 2 });
      const first = await world.connect(1);
      await world.connect(2);
      await expect(world.connect(3)).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_REFUSED" });
      await first.close();
      await connectOnceFree(world, 3);
    });
  });
}
