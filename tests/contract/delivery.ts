import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Transport } from "../../src/transport/types.js";
import { scaled } from "../support/scale.js";
import type { OpenWorld } from "./transport.js";
import { idsOf, letter, type Outgoing, take } from "./world.js";

const U32_MAX = 2 ** 32 - 1;

export function deliveryContract(open: OpenWorld): void {
  describe("delivery", () => {
    test("an envelope arrives as it was sent", async () => {
      const world = await open();
      const source = await world.connect(U32_MAX);
      const destination = await world.connect(0);
      const sent: Outgoing[] = [
        { destination: 0, tag: 0, router: 0, requestId: 0n, sequence: 0, bytes: new Uint8Array(0) },
        {
          destination: 0,
          tag: U32_MAX,
          router: 7,
          requestId: 2n ** 64n - 1n,
          sequence: U32_MAX,
          bytes: Uint8Array.of(255, 0, 1),
        },
        {
          destination: 0,
          tag: 1,
          router: U32_MAX,
          requestId: 2n ** 53n + 1n,
          sequence: 1,
          bytes: new Uint8Array(100_000).fill(9),
        },
        {
          destination: 0,
          tag: 2,
          router: 1,
          requestId: 1n,
          sequence: 2,
          bytes: Uint8Array.of(1, 2, 3, 4).subarray(1, 3),
        },
      ];
      const wanted = sent.map((envelope) => ({ ...envelope, source: U32_MAX, bytes: [...envelope.bytes] }));
      for (const envelope of sent) await source.send(envelope);
      const taken = await take(destination, sent.length);
      expect(taken.map((envelope) => ({ ...envelope, bytes: [...envelope.bytes] }))).toEqual(wanted);
      for (const envelope of taken) expect(envelope.bytes).toBeInstanceOf(Uint8Array);
    });

    test("a receiver that comes late gets what came before it, in order", async () => {
      const world = await open();
      const source = await world.connect(1);
      const destination = await world.connect(2);
      for (let id = 0; id < 200; id++) await source.send(letter(2, id));
      expect(idsOf(await take(destination, 200))).toEqual(Array.from({ length: 200 }, (_, id) => id));
    });

    test("a receiver that waits gets what comes, in order", async () => {
      const world = await open();
      const source = await world.connect(1);
      const taking = take(await world.connect(2), 1_000);
      for (let id = 0; id < 1_000; id++) await source.send(letter(2, id));
      expect(idsOf(await taking)).toEqual(Array.from({ length: 1_000 }, (_, id) => id));
    });

    test("a rank reaches itself", async () => {
      const world = await open();
      const transport = await world.connect(3);
      await transport.send(letter(3, 1));
      const [envelope] = await take(transport, 1);
      expect(envelope).toMatchObject({ source: 3, destination: 3, requestId: 1n });
    });

    test("every rank reaches every other", async () => {
      const world = await open();
      const ranks = [1, 2, 3, 4];
      const transports: Transport[] = [];
      for (const rank of ranks) transports.push(await world.connect(rank));
      for (const transport of transports) for (const rank of ranks) await transport.send(letter(rank, rank));
      for (const transport of transports) {
        const sources = (await take(transport, ranks.length)).map((envelope) => envelope.source);
        expect(sources.sort()).toEqual(ranks);
      }
    });

    test("many send at once through a narrow window, and each way keeps its order", async () => {
      const world = await open({ windowEnvelopes: 3 });
      const destination = await world.connect(0);
      const sources = [await world.connect(1), await world.connect(2), await world.connect(3)];
      const sending = sources.map((source) =>
        Promise.all(Array.from({ length: 100 }, (_, id) => source.send(letter(0, id)))),
      );
      const taken = await take(destination, 300);
      await Promise.all(sending);
      for (const { rank } of sources) {
        const own = idsOf(taken.filter((envelope) => envelope.source === rank));
        expect(own).toEqual(Array.from({ length: 100 }, (_, id) => id));
      }
    });

    test("what is sent is what is taken, way by way, whatever the order of sends and takes", async () => {
      const step = fc.record({ from: fc.nat(2), to: fc.nat(2), size: fc.nat(40), takes: fc.nat(3) });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
          const world = await open({ windowEnvelopes: 4, windowBytes: 64 });
          const transports = [await world.connect(0), await world.connect(1), await world.connect(2)];
          const ways = new Map<string, number[]>();
          const left = [0, 0, 0];
          const sends: Promise<void>[] = [];
          const check = async (rank: number, count: number) => {
            left[rank] = (left[rank] as number) - count;
            for (const { source, requestId, bytes } of await take(transports[rank] as Transport, count)) {
              expect(ways.get(`${source} ${rank}`)?.shift()).toBe(Number(requestId));
              expect(bytes.every((byte) => byte === Number(requestId) % 256)).toBe(true);
            }
          };
          for (const [id, { from, to, size, takes }] of steps.entries()) {
            const way = `${from} ${to}`;
            ways.set(way, [...(ways.get(way) ?? []), id]);
            left[to] = (left[to] as number) + 1;
            sends.push((transports[from] as Transport).send(letter(to, id, new Uint8Array(size).fill(id))));
            await check(to, Math.min(takes, left[to] as number));
          }
          for (const rank of left.keys()) await check(rank, left[rank] as number);
          await Promise.all(sends);
          await world.close();
        }),
        { numRuns: scaled(30) },
      );
    });
  });
}
