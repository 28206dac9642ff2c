import { describe, expect, test } from "vitest";
import type { Transport } from "../../src/transport/types.js";
import { until } from "../support/until.js";
import type { OpenWorld } from "./transport.js";
import { idsOf, letter, roundTrip, take, takeAll, watch } from "./world.js";

interface Loss {
  readonly rank: number;
  readonly reason: Error;
}

function lossesOf(transport: Transport): Loss[] {
  const losses: Loss[] = [];
  transport.onPeerLost((rank, reason) => losses.push({ rank, reason }));
  return losses;
}

export function endingContract(open: OpenWorld): void {
  describe("the end", () => {
    test("closing ends a receiver that waits", async () => {
      const world = await open();
      const transport = await world.connect(1);
      const taking = takeAll(transport);
      await transport.close();
      expect(await taking).toEqual([]);
    });

    test("closing leaves what has arrived to be taken", async () => {
      const world = await open();
      const transport = await world.connect(1);
      for (let id = 0; id < 3; id++) await transport.send(letter(1, id));
      const first = await take(transport, 1); // all three have come: a way keeps its order, and the last was sent before
      await roundTripPast(transport, 3);
      await transport.close();
      expect(idsOf([...first, ...(await takeAll(transport))])).toEqual([0, 1, 2, 3]);
    });

    test("a closed transport says why it sends nothing, and closing again changes nothing", async () => {
      const world = await open();
      const transport = await world.connect(1);
      await world.connect(2);
      await transport.close("the night has come");
      await transport.close("another reason");
      const error = { code: "KVROUTE_TRANSPORT_CLOSED", message: expect.stringContaining("the night has come") };
      await expect(transport.send(letter(2, 0))).rejects.toMatchObject(error);
      expect(await takeAll(transport)).toEqual([]);
    });

    test("closing refuses the sends that wait", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const source = await world.connect(1);
      await world.connect(2);
      await source.send(letter(2, 0));
      const waiting = watch(source.send(letter(2, 1)));
      await source.close();
      await waiting.settled;
      expect(waiting.error).toMatchObject({ code: "KVROUTE_TRANSPORT_CLOSED" });
    });

    test("what was sent before closing arrives, and then the news that the sender went, with its reason", async () => {
      const world = await open();
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const losses = lossesOf(destination);
      for (let id = 0; id < 5; id++) await source.send(letter(2, id));
      await source.close("all is said");
      const seen: number[] = [];
      for await (const { requestId } of destination.receive()) {
        seen.push(losses.length);
        if (requestId === 4n) break;
      }
      expect(seen).toEqual([0, 0, 0, 0, 0]);
      const rest = take(destination, 1); // asks for more, so that the news is next
      await until(() => losses.length === 1, "the loss is told");
      expect(losses[0]).toMatchObject({ rank: 1, reason: { code: "KVROUTE_TRANSPORT_PEER_LOST" } });
      expect(losses[0]?.reason.message).toContain("all is said");
      await destination.close();
      expect(await rest).toEqual([]);
    });

    test.each(["waits", "is not there"])("a loss is told when the receiver %s", async (receiver) => {
      const world = await open();
      const lost = await world.connect(1);
      const transport = await world.connect(2);
      const losses = lossesOf(transport);
      const taking = receiver === "waits" ? takeAll(transport) : undefined;
      await lost.close();
      await until(() => losses.length === 1, "the loss is told");
      await transport.close();
      await taking;
      expect(losses.map((loss) => loss.rank)).toEqual([1]);
    });

    test("a connection that breaks says so to its own end and to all others", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const killed = await world.connect(1);
      const others = [await world.connect(2), await world.connect(3)];
      const losses = others.map(lossesOf);
      await others[0]?.send(letter(1, 0));
      const waiting = watch((others[0] as Transport).send(letter(1, 1)));
      world.kill(1);
      await waiting.settled;
      expect(waiting.error).toMatchObject({ code: "KVROUTE_TRANSPORT_PEER_LOST" });
      await until(() => losses.every((list) => list.length === 1), "both are told");
      for (const transport of others) {
        await expect(transport.send(letter(1, 2))).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_UNKNOWN_RANK" });
      }
      await expect(takeAll(killed)).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
      await expect(killed.send(letter(2, 3))).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
    });

    test("a broken connection refuses the sends that wait, and the receiver that waits", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const killed = await world.connect(1);
      await world.connect(2);
      const taking = watch(takeAll(killed).then(() => undefined));
      await killed.send(letter(2, 0));
      const waiting = watch(killed.send(letter(2, 1)));
      world.kill(1);
      await Promise.all([taking.settled, waiting.settled]);
      expect(taking.error).toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
      expect(waiting.error).toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
      await killed.close(); // closing what is broken is no error
    });

    test("a rank that comes back starts anew, with a window of its own", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const source = await world.connect(1);
      const before = await world.connect(2);
      const losses = lossesOf(source);
      await source.send(letter(2, 0));
      await before.close();
      await until(() => losses.length === 1, "the loss is told");
      const after = await world.connect(2);
      await source.send(letter(2, 1));
      expect(idsOf(await take(after, 1))).toEqual([1]);
      await after.send(letter(1, 2));
      expect(idsOf(await take(source, 1))).toEqual([2]);
    });

    test("a listener that was taken off hears nothing, and one that is there twice hears twice", async () => {
      const world = await open();
      const transport = await world.connect(1);
      const heard: string[] = [];
      const hear = () => heard.push("twice");
      transport.onPeerLost(hear);
      transport.onPeerLost(hear);
      const takeOff = transport.onPeerLost(() => heard.push("never"));
      takeOff();
      takeOff();
      await (await world.connect(2)).close();
      await until(() => heard.length > 0, "a listener hears");
      await roundTrip(transport);
      expect(heard).toEqual(["twice", "twice"]);
    });
  });
}

/** Sends a rank one more from itself without taking it, and lets it arrive. */
async function roundTripPast(transport: Transport, id: number): Promise<void> {
  await transport.send(letter(transport.rank, id));
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
