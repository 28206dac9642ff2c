import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import { TransportHub, type TransportHubOptions } from "../../src/transport/hub.js";
import { connect } from "../../src/transport/wire/connect.js";
import { encodeFrame, type Frame, type FrameBytes } from "../../src/transport/wire/frames.js";
import { idsOf, letter, take, watch } from "../contract/world.js";
import { scaled } from "../support/scale.js";
import { Hand, parcel, settle } from "./hostile-guest.js";

const hubs: TransportHub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close();
});

function open(options: TransportHubOptions = {}) {
  const hub = new TransportHub(options);
  hubs.push(hub);
  const misdeeds: (readonly [number | null, string])[] = [];
  hub.onMisdeed((rank, error) => misdeeds.push([rank, error.message]));
  const guest = () => {
    const { hand, pipe } = Hand.pair();
    hub.attach(pipe);
    return hand;
  };
  return { hub, misdeeds, guest };
}

/** A guest of rank 1 that has been welcomed, beside an honest rank 2. */
async function greeted(options: TransportHubOptions = {}) {
  const { hub, misdeeds, guest } = open(options);
  const honest = await hub.connect(2);
  const hand = guest();
  hand.post({ kind: "hello", rank: 1 });
  await settle();
  const epoch = hand.last("welcome")?.peers.find(({ rank }) => rank === 2)?.epoch as number;
  return { hub, misdeeds, hand, honest, epoch };
}

describe("the greeting", () => {
  test("tells the limits and who is there, and the others who has come", async () => {
    const { hub, guest } = open({ windowEnvelopes: 3, windowBytes: 5, maxEnvelopeBytes: 7 });
    const first = guest();
    first.post({ kind: "hello", rank: 8 });
    await settle();
    const second = guest();
    second.post({ kind: "hello", rank: 9 });
    await settle();
    const limits = { windowEnvelopes: 3, windowBytes: 5, maxEnvelopeBytes: 7 };
    expect(first.heard).toEqual([
      { kind: "welcome", ...limits, peers: [{ rank: 8, epoch: 1 }] },
      { kind: "joined", rank: 9, epoch: 2 },
    ]);
    expect(second.heard).toEqual([
      {
        kind: "welcome",
        ...limits,
        peers: [
          { rank: 8, epoch: 1 },
          { rank: 9, epoch: 2 },
        ],
      },
    ]);
    expect(hub.ranks).toEqual([8, 9]);
  });

  test("is waited for as long as the clock says", async () => {
    const timers: { callback: () => void; delayMs: number }[] = [];
    const cleared: unknown[] = [];
    const clock: Clock = {
      now: () => 0,
      setTimeout: (callback, delayMs) => timers.push({ callback, delayMs }),
      clearTimeout: (handle) => cleared.push(handle),
    };
    const { hub, guest } = open({ clock, helloTimeoutMs: 50 });
    const silent = guest();
    const polite = guest();
    polite.post({ kind: "hello", rank: 1 });
    await settle();
    expect(timers.map((timer) => timer.delayMs)).toEqual([50, 50]);
    expect(cleared).toEqual([2]);
    expect(hub.strangers).toBe(1);
    timers[0]?.callback();
    await settle();
    expect(silent.heard).toEqual([{ kind: "refused", reason: "nothing was said for 50 ms" }]);
    expect(silent.closed).not.toBeNull();
    expect([hub.strangers, hub.ranks]).toEqual([0, [1]]);
  });

  test("does not happen at a hub that is closed", async () => {
    const { hub } = open();
    await hub.close("out of business");
    await expect(hub.connect(1)).rejects.toMatchObject({
      code: "KVROUTE_TRANSPORT_REFUSED",
      message: expect.stringContaining("out of business"),
    });
  });

  test("counts those who have said nothing among the ranks that may be", async () => {
    const { hub, guest } = open({ maxRanks: 1 });
    const silent = guest();
    await expect(hub.connect(1)).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_REFUSED" });
    await silent.close();
    await settle();
    await hub.connect(1);
  });

  test.each<[string, Frame | FrameBytes]>([
    ["an envelope", { kind: "data", epoch: 0, envelope: parcel(1, 1) }],
    ["a welcome", { kind: "welcome", windowEnvelopes: 1, windowBytes: 1, maxEnvelopeBytes: 1, peers: [] }],
    ["no frame", new Uint8Array(3)],
  ])("is not %s", async (_, frame) => {
    const { hub, misdeeds, guest } = open();
    const hand = guest();
    hand.post(frame);
    await settle();
    expect(hand.kinds()).toEqual(["refused"]);
    expect(misdeeds).toEqual([[null, expect.stringContaining("Expected")]]);
    expect([hub.strangers, hub.ranks]).toEqual([0, []]);
  });
});

describe("a guest that breaks the rules", () => {
  const misdeeds: [string, (epoch: number) => (Frame | FrameBytes)[]][] = [
    ["sends under another rank", (epoch) => [{ kind: "data", epoch, envelope: parcel(2, 2) }]],
    ["sends more than the window", (epoch) => Array(3).fill({ kind: "data", epoch, envelope: parcel(1, 2) })],
    ["sends more bytes than the window", (epoch) => Array(2).fill({ kind: "data", epoch, envelope: parcel(1, 2, 60) })],
    ["sends an envelope that is too large", (epoch) => [{ kind: "data", epoch, envelope: parcel(1, 2, 201) }]],
    ["acknowledges what was not sent", (epoch) => [{ kind: "taken", rank: 2, epoch, envelopes: 1, bytes: 0 }]],
    ["acknowledges nothing", (epoch) => [{ kind: "taken", rank: 2, epoch, envelopes: 0, bytes: 0 }]],
    ["says hello twice", () => [{ kind: "hello", rank: 1 }]],
    ["speaks as if it were the hub", () => [{ kind: "lost", rank: 2, epoch: 1, reason: "" }]],
    ["sends no frame", () => [new Uint8Array(0)]],
  ];

  test.each(misdeeds)("%s: it is told so and goes, and nobody else", async (_, frames) => {
    const limits = { windowEnvelopes: 2, windowBytes: 100, maxEnvelopeBytes: 200 };
    const { hub, misdeeds: told, hand, honest, epoch } = await greeted(limits);
    const lost: string[] = [];
    honest.onPeerLost((rank, reason) => lost.push(`${rank}: ${reason.message}`));
    const sent = frames(epoch).filter((frame) => !(frame instanceof Uint8Array) && frame.kind === "data").length;
    for (const frame of frames(epoch)) hand.post(frame);
    await settle();
    expect(hand.last("bye")?.reason).toContain("Expected");
    expect(hand.closed).not.toBeNull();
    expect(told).toEqual([[1, expect.stringContaining("Expected")]]);
    expect(hub.ranks).toEqual([2]);
    await take(honest, Math.max(0, sent - 1)); // what was within the rules has arrived
    await honest.send(letter(2, 7));
    expect(idsOf(await take(honest, 1))).toEqual([7]);
    expect(lost).toHaveLength(1);
  });

  test("is not one that sends to a connection that is gone, or acknowledges it: it could not know", async () => {
    const { hub, misdeeds, hand, honest, epoch } = await greeted();
    await honest.send(letter(1, 0));
    await settle();
    await honest.close();
    hand.post({ kind: "data", epoch, envelope: parcel(1, 2) });
    hand.post({ kind: "taken", rank: 2, epoch, envelopes: 1, bytes: 0 });
    const back = await hub.connect(2);
    hand.post({ kind: "data", epoch, envelope: parcel(1, 2) });
    hand.post({ kind: "taken", rank: 2, epoch, envelopes: 1, bytes: 0 });
    await settle();
    expect(misdeeds).toEqual([]);
    expect(hub.ranks).toEqual([1, 2]);
    await back.send(letter(2, 5));
    expect(idsOf(await take(back, 1))).toEqual([5]);
  });

  test("whatever it posts, the others go on", async () => {
    const text = fc.record({ kind: fc.constantFrom("bye", "refused"), reason: fc.string() });
    const small = fc.nat(3);
    const peer = fc.record({
      kind: fc.constantFrom("joined", "lost", "taken"),
      rank: small,
      epoch: small,
      envelopes: small,
      bytes: small,
      reason: fc.string(),
    });
    const data = fc
      .record({ source: small, destination: small, size: fc.nat(300), epoch: small })
      .map(({ source, destination, size, epoch }) => ({
        kind: "data",
        epoch,
        envelope: parcel(source, destination, size),
      }));
    const frame = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map((bytes) => new Uint8Array(bytes)),
      text,
      peer,
      data,
      fc.record({ kind: fc.constant("hello"), rank: small }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 20 }), async (frames) => {
        const { hub, guest } = open({ windowEnvelopes: 4, windowBytes: 200, maxEnvelopeBytes: 256 });
        const left = await hub.connect(2);
        const right = await hub.connect(3);
        const hand = guest();
        for (const one of frames) hand.post(one as Frame | FrameBytes);
        await settle();
        await left.send(letter(3, 7));
        for await (const { source } of right.receive()) if (source === 2) break;
        await hand.close();
        await hub.close();
        expect([hub.ranks, hub.strangers]).toEqual([[], 0]);
      }),
      { numRuns: scaled(300) },
    );
  });
});

describe("an end whose hub breaks the rules", () => {
  const limits = { windowEnvelopes: 2, windowBytes: 100, maxEnvelopeBytes: 200 };
  const welcome: Frame = {
    kind: "welcome",
    ...limits,
    peers: [
      { rank: 1, epoch: 1 },
      { rank: 2, epoch: 2 },
    ],
  };
  const from2 = (size: number): Frame => ({ kind: "data", epoch: 2, envelope: parcel(2, 1, size) });

  async function end() {
    const { hand, pipe } = Hand.pair();
    const connecting = connect(pipe, { rank: 1 });
    hand.post(welcome);
    return { hand, transport: await connecting };
  }

  test.each<[string, (Frame | FrameBytes)[]]>([
    ["sends more than the window", [from2(0), from2(0), from2(0)]],
    ["sends more bytes than the window", [from2(60), from2(60)]],
    ["sends an envelope that is too large", [from2(201)]],
    ["sends from a rank that is not there", [{ kind: "data", epoch: 1, envelope: parcel(9, 1) }]],
    ["sends from another connection of a rank", [{ kind: "data", epoch: 7, envelope: parcel(2, 1) }]],
    ["sends what is for another", [{ kind: "data", epoch: 2, envelope: parcel(2, 3) }]],
    ["acknowledges what was not sent", [{ kind: "taken", rank: 2, epoch: 2, envelopes: 1, bytes: 0 }]],
    ["names a rank twice", [{ kind: "joined", rank: 2, epoch: 3 }]],
    ["loses a rank that is not there", [{ kind: "lost", rank: 3, epoch: 3, reason: "" }]],
    ["welcomes twice", [welcome]],
    ["sends no frame", [new Uint8Array(7)]],
  ])("%s: it breaks, and says why", async (_, frames) => {
    const { hand, transport } = await end();
    for (const frame of frames) hand.post(frame);
    await settle();
    const broken = { code: "KVROUTE_TRANSPORT_BROKEN", cause: { code: "KVROUTE_TRANSPORT_FRAME" } };
    await expect(transport.send(letter(2, 0))).rejects.toMatchObject(broken);
    expect(hand.last("bye")?.reason).toContain("Expected");
    expect(hand.closed).not.toBeNull();
  });

  test.each(["windowEnvelopes", "windowBytes", "maxEnvelopeBytes"] as const)(
    "is not made if its %s is more than was agreed to, or 0",
    async (name) => {
      for (const [value, isFine] of [
        [0, false],
        [1, true],
        [10, true],
        [11, false],
      ] as const) {
        const { hand, pipe } = Hand.pair();
        const connecting = watch(connect(pipe, { rank: 1, [name]: 10 }).then(() => undefined));
        hand.post({
          kind: "welcome",
          windowEnvelopes: 1,
          windowBytes: 1,
          maxEnvelopeBytes: 1,
          [name]: value,
          peers: [],
        } as Frame);
        await connecting.settled;
        expect(connecting.state).toBe(isFine ? "sent" : "refused");
        if (!isFine) expect(connecting.error).toMatchObject({ code: "KVROUTE_TRANSPORT_REFUSED" });
      }
    },
  );

  test("is given up by its signal, or when the pipe closes, or what answers is no welcome", async () => {
    const reason = new Error("enough");
    await expect(connect(Hand.pair().pipe, { rank: 1, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const giveUp = new AbortController();
    const { hand, pipe } = Hand.pair();
    const connecting = connect(pipe, { rank: 1, signal: giveUp.signal });
    giveUp.abort(reason);
    await expect(connecting).rejects.toBe(reason);
    await settle();
    expect(hand.closed).not.toBeNull();
    const silent = Hand.pair();
    void silent.hand.close();
    await expect(connect(silent.pipe, { rank: 1 })).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
    const strange = Hand.pair();
    strange.hand.post({ kind: "bye", reason: "" });
    await expect(connect(strange.pipe, { rank: 1 })).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_FRAME" });
  });
});

describe("who is connected", () => {
  test("is told to those who ask, and to those who listen", async () => {
    const { hub } = open();
    const first = await hub.connect(1);
    const joined: number[] = [];
    const takeOff = first.onPeerJoined((rank) => joined.push(rank));
    const second = await hub.connect(2);
    await settle();
    expect([first.ranks, second.ranks, joined]).toEqual([[1, 2], [1, 2], [2]]);
    await second.close();
    takeOff();
    await hub.connect(3);
    await settle();
    expect([first.ranks, joined]).toEqual([[1, 3], [2]]);
  });

  test("a rank that nobody has cannot be disconnected", () => {
    const { hub } = open();
    expect(() => hub.disconnect(1)).toThrow(expect.objectContaining({ code: "KVROUTE_TRANSPORT_UNKNOWN_RANK" }));
  });
});

test("acknowledgements are as few as half a window each, where the receiver is busy", async () => {
  const { hand, honest, epoch } = await greeted({ windowEnvelopes: 8 });
  for (let id = 0; id < 8; id++) hand.post(encodeFrame({ kind: "data", epoch, envelope: parcel(1, 2, 3) }));
  await settle();
  await take(honest, 8);
  await settle();
  const taken = hand.heard.filter((frame) => frame.kind === "taken");
  expect(taken).toEqual([
    { kind: "taken", rank: 2, epoch, envelopes: 4, bytes: 12 },
    { kind: "taken", rank: 2, epoch, envelopes: 4, bytes: 12 },
  ]);
});
