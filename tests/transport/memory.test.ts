import { describe, expect, test } from "vitest";
import { MemoryNetwork, type MemoryNetworkOptions } from "../../src/transport/memory.js";
import type { Envelope } from "../../src/transport/types.js";
import { idsOf, letter, take, takeAll, watch } from "../contract/world.js";

/** Delays that end when the test says so, by request id. */
class Delays {
  readonly #ends = new Map<number, () => void>();

  readonly delay = ({ requestId }: Envelope) =>
    new Promise<void>((resolve) => this.#ends.set(Number(requestId), resolve));

  async end(id: number): Promise<void> {
    this.#ends.get(id)?.();
    await Promise.resolve();
  }
}

function pair(options: MemoryNetworkOptions = {}) {
  const network = new MemoryNetwork(options);
  return { network, source: network.connect(1), destination: network.connect(2) };
}

describe("a delay", () => {
  test("holds an envelope back, and those behind it", async () => {
    const delays = new Delays();
    const { source, destination } = pair({ delay: delays.delay });
    for (const id of [0, 1, 2]) await source.send(letter(2, id));
    const taken: number[] = [];
    const taking = (async () => {
      for await (const { requestId } of destination.receive()) taken.push(Number(requestId));
    })();
    await delays.end(1);
    await delays.end(2);
    expect(taken).toEqual([]);
    await delays.end(0);
    await destination.close();
    await taking;
    expect(taken).toEqual([0, 1, 2]);
  });

  test("lets those behind it pass where they may overtake", async () => {
    const delays = new Delays();
    const { source, destination } = pair({ delay: delays.delay, reorders: true });
    for (const id of [0, 1, 2]) await source.send(letter(2, id));
    for (const id of [2, 0, 1]) await delays.end(id);
    expect(idsOf(await take(destination, 3))).toEqual([2, 0, 1]);
  });

  test("of one way does not hold up another", async () => {
    const delays = new Delays();
    const { network, source, destination } = pair({
      delay: (envelope) => (envelope.source === 1 ? delays.delay(envelope) : undefined),
    });
    await source.send(letter(2, 0));
    await network.connect(3).send(letter(2, 1));
    expect(idsOf(await take(destination, 1))).toEqual([1]);
  });

  test("that fails is a delay that has ended", async () => {
    const { source, destination } = pair({ delay: () => Promise.reject(new Error("no")) });
    await source.send(letter(2, 0));
    expect(idsOf(await take(destination, 1))).toEqual([0]);
  });

  test("keeps the room of the window until the envelope is taken", async () => {
    const delays = new Delays();
    const { source, destination } = pair({ windowEnvelopes: 1, delay: delays.delay });
    await source.send(letter(2, 0));
    const second = watch(source.send(letter(2, 1)));
    await delays.end(0);
    expect(second.state).toBe("waiting");
    expect(idsOf(await take(destination, 1))).toEqual([0]);
    await second.settled;
    expect(second.state).toBe("sent");
  });
});

describe("a loss", () => {
  test("is not noticed by the sender, and leaves its room to others", async () => {
    const { source, destination } = pair({ windowEnvelopes: 1, loses: ({ requestId }) => requestId < 5n });
    for (let id = 0; id < 6; id++) await source.send(letter(2, id));
    expect(idsOf(await take(destination, 1))).toEqual([5]);
  });

  test("of everything that waits does not exhaust the stack", async () => {
    let isLossy = false;
    const { source, destination } = pair({ windowEnvelopes: 1, loses: () => isLossy });
    await source.send(letter(2, 0));
    const sends = Array.from({ length: 16_384 }, (_, id) => source.send(letter(2, id + 1)));
    isLossy = true;
    await take(destination, 1);
    await Promise.all(sends);
  });
});

describe("the end of a rank", () => {
  test("by closing lets what is under way arrive, and then tells; until then its rank is taken", async () => {
    const delays = new Delays();
    const { network, source, destination } = pair({ delay: delays.delay });
    const bystander = network.connect(3);
    const heard: string[] = [];
    destination.onPeerLost((rank) => heard.push(`2 hears of ${rank}`));
    bystander.onPeerLost((rank) => heard.push(`3 hears of ${rank}`));
    await source.send(letter(2, 0));
    const closing = source.close();
    await expect(async () => network.connect(1)).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_REFUSED" });
    await expect(bystander.send(letter(1, 9))).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_UNKNOWN_RANK" });
    expect(network.ranks).toEqual([2, 3]);
    expect(idsOf(await takeWhile(() => delays.end(0), destination))).toEqual([0]);
    await closing;
    network.connect(1);
    expect(heard.sort()).toEqual(["2 hears of 1", "3 hears of 1"]);
  });

  test("by a break loses what is under way, and keeps what has arrived", async () => {
    const delays = new Delays();
    const { network, source, destination } = pair({
      delay: (envelope) => (envelope.requestId === 1n ? delays.delay(envelope) : undefined),
    });
    await source.send(letter(2, 0));
    await source.send(letter(2, 1));
    const heard: number[] = [];
    destination.onPeerLost((rank) => heard.push(rank));
    network.disconnect(1, "pulled the plug");
    await delays.end(1);
    expect(heard).toEqual([]);
    await destination.close();
    expect(idsOf(await takeAll(destination))).toEqual([0]);
    expect(heard).toEqual([1]);
  });

  test("while it closes loses what is under way, if it breaks then", async () => {
    const { network, source, destination } = pair({ delay: new Delays().delay });
    const heard: number[] = [];
    destination.onPeerLost((rank) => heard.push(rank));
    await source.send(letter(2, 0));
    const closing = source.close();
    network.disconnect(1);
    await closing;
    expect(heard).toEqual([1]);
    await destination.close();
    expect(idsOf(await takeAll(destination))).toEqual([]);
  });

  test("drops what is under way to it, so that the sender may close", async () => {
    const { network, source } = pair({ delay: new Delays().delay });
    await source.send(letter(2, 0));
    network.disconnect(2);
    await source.close();
    expect(network.ranks).toEqual([]);
  });

  test("is refused to who is not connected", () => {
    expect(() => new MemoryNetwork().disconnect(4)).toThrow(
      expect.objectContaining({ code: "KVROUTE_TRANSPORT_UNKNOWN_RANK" }),
    );
  });
});

/** Does something, and takes what has arrived by then. */
async function takeWhile(
  act: () => Promise<void>,
  transport: ReturnType<MemoryNetwork["connect"]>,
): Promise<Envelope[]> {
  const stop = new AbortController();
  const taken: Envelope[] = [];
  const taking = (async () => {
    for await (const envelope of transport.receive({ signal: stop.signal })) taken.push(envelope);
  })();
  await act();
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await taking;
  return taken;
}

describe("limits", () => {
  test.each([
    ["windowEnvelopes", 1, 65_536],
    ["windowBytes", 1, 2 ** 31 - 1],
    ["maxEnvelopeBytes", 1, 2 ** 31 - 1],
    ["maxWaiting", 0, 2 ** 20],
    ["maxRanks", 1, 65_536],
  ] as const)("%s is a whole number from %i to %i", (name, least, most) => {
    for (const value of [least, most]) new MemoryNetwork({ [name]: value });
    for (const value of [least - 1, most + 1, least + 0.5, Number.NaN]) {
      expect(() => new MemoryNetwork({ [name]: value })).toThrow(
        expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }),
      );
    }
    for (const value of ["1", Object.create(null), Symbol("1")]) {
      expect(() => new MemoryNetwork({ [name]: value })).toThrow(
        expect.objectContaining({ code: "KVROUTE_ARGUMENT_TYPE" }),
      );
    }
  });

  test("are 256 envelopes and 64 MiB where nothing is said", async () => {
    const { source, destination } = pair();
    for (let id = 0; id < 256; id++) await source.send(letter(2, id));
    const more = watch(source.send(letter(2, 256)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(more.state).toBe("waiting");
    await take(destination, 257);
    const mib = 2 ** 20;
    await expect(source.send(letter(2, 0, new Uint8Array(64 * mib + 1)))).rejects.toMatchObject({
      code: "KVROUTE_TRANSPORT_TOO_LARGE",
    });
    await source.send(letter(2, 0, new Uint8Array(64 * mib)));
    const beyond = watch(source.send(letter(2, 1, new Uint8Array(1))));
    await new Promise((resolve) => setImmediate(resolve));
    expect(beyond.state).toBe("waiting");
    await destination.close();
    await beyond.settled;
  });
});
