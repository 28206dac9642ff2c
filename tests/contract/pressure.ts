import { describe, expect, test } from "vitest";
import type { OpenWorld } from "./transport.js";
import { idsOf, letter, roundTrip, take, watch } from "./world.js";

export function pressureContract(open: OpenWorld): void {
  describe("back-pressure", () => {
    test("a send waits while as many envelopes as the window holds were not taken, and goes on once one is", async () => {
      const world = await open({ windowEnvelopes: 2 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      await source.send(letter(2, 0));
      await source.send(letter(2, 1));
      const third = watch(source.send(letter(2, 2)));
      await roundTrip(source);
      expect(third.state).toBe("waiting");
      expect(idsOf(await take(destination, 1))).toEqual([0]);
      const rest = take(destination, 2);
      await third.settled;
      expect(third.state).toBe("sent");
      expect(idsOf(await rest)).toEqual([1, 2]);
    });

    test("a send waits while the window has no room for its bytes", async () => {
      const world = await open({ windowBytes: 100 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      await source.send(letter(2, 0, new Uint8Array(60)));
      await source.send(letter(2, 1, new Uint8Array(40)));
      const third = watch(source.send(letter(2, 2, new Uint8Array(1))));
      await roundTrip(source);
      expect(third.state).toBe("waiting");
      expect(idsOf(await take(destination, 3))).toEqual([0, 1, 2]);
      await third.settled;
      expect(third.state).toBe("sent");
    });

    test("an envelope larger than the window goes alone", async () => {
      const world = await open({ windowBytes: 10 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      await source.send(letter(2, 0, new Uint8Array(11)));
      const small = watch(source.send(letter(2, 1, new Uint8Array(1))));
      const large = watch(source.send(letter(2, 2, new Uint8Array(500))));
      await roundTrip(source);
      expect([small.state, large.state]).toEqual(["waiting", "waiting"]);
      expect(idsOf(await take(destination, 3))).toEqual([0, 1, 2]);
      await large.settled;
      expect([small.state, large.state]).toEqual(["sent", "sent"]);
    });

    test("a way that is full holds no other up", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const source = await world.connect(1);
      const slow = await world.connect(2);
      const quick = await world.connect(3);
      await source.send(letter(2, 0));
      const waiting = watch(source.send(letter(2, 1)));
      for (let id = 0; id < 10; id++) {
        await source.send(letter(3, id));
        expect(idsOf(await take(quick, 1))).toEqual([id]);
      }
      expect(waiting.state).toBe("waiting");
      await quick.send(letter(2, 2));
      expect(idsOf(await take(slow, 3)).sort()).toEqual([0, 1, 2]);
    });

    test("a send that is given up while it waits is not sent, and those behind it go on in order", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const giveUp = new AbortController();
      await source.send(letter(2, 0));
      const sends = [1, 2, 3].map((id) => watch(source.send(letter(2, id), id === 2 ? { signal: giveUp.signal } : {})));
      const reason = new Error("enough");
      giveUp.abort(reason);
      await sends[1]?.settled;
      expect(sends[1]).toMatchObject({ state: "refused", error: reason });
      expect(idsOf(await take(destination, 3))).toEqual([0, 1, 3]);
      await Promise.all(sends.map((send) => send.settled));
      expect(sends.map((send) => send.state)).toEqual(["sent", "refused", "sent"]);
    });

    test("a large send that is given up lets a small one behind it pass", async () => {
      const world = await open({ windowBytes: 10 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const giveUp = new AbortController();
      await source.send(letter(2, 0, new Uint8Array(5)));
      const large = watch(source.send(letter(2, 1, new Uint8Array(9)), { signal: giveUp.signal }));
      const small = watch(source.send(letter(2, 2, new Uint8Array(5))));
      giveUp.abort();
      await Promise.all([large.settled, small.settled]);
      expect([large.state, small.state]).toEqual(["refused", "sent"]);
      expect(idsOf(await take(destination, 2))).toEqual([0, 2]);
    });

    test("a send whose signal is aborted before is not sent", async () => {
      const world = await open();
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const reason = new Error("before");
      await expect(source.send(letter(2, 0), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await source.send(letter(2, 1));
      expect(idsOf(await take(destination, 1))).toEqual([1]);
    });

    test("a signal that is aborted after its send changes nothing", async () => {
      const world = await open({ windowEnvelopes: 1 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      const late = new AbortController();
      await source.send(letter(2, 0), { signal: late.signal });
      const second = watch(source.send(letter(2, 1), { signal: late.signal }));
      const taken = await take(destination, 2);
      await second.settled;
      late.abort();
      await source.send(letter(2, 2));
      expect(idsOf([...taken, ...(await take(destination, 1))])).toEqual([0, 1, 2]);
    });

    test("as many sends wait as may, and one more is refused", async () => {
      const world = await open({ windowEnvelopes: 1, maxWaiting: 2 });
      const source = await world.connect(1);
      const destination = await world.connect(2);
      await source.send(letter(2, 0));
      const sends = [1, 2, 3].map((id) => watch(source.send(letter(2, id))));
      await sends[2]?.settled;
      expect(sends.map((send) => send.state)).toEqual(["waiting", "waiting", "refused"]);
      expect(sends[2]?.error).toMatchObject({ code: "KVROUTE_TRANSPORT_BUSY" });
      expect(idsOf(await take(destination, 3))).toEqual([0, 1, 2]);
    });
  });
}
