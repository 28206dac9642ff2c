import type { TransportLimits } from "../../src/transport/limits.js";
import type { Envelope, Transport } from "../../src/transport/types.js";

/** Ranks that reach each other, through one implementation of a transport. */
export interface World {
  /** Connects a rank. All that were connected before know of it when the promise settles. */
  connect(rank: number): Promise<Transport>;
  /** Breaks the connection of a rank, without a word from it. */
  kill(rank: number): void;
  /** Lets go of everything. */
  close(): Promise<void>;
}

export interface TransportUnderTest {
  readonly name: string;
  open(limits: TransportLimits): Promise<World>;
}

export type Outgoing = Omit<Envelope, "source">;

/** Makes an envelope whose request id tells it from others. */
export function letter(destination: number, requestId: number, bytes = new Uint8Array(0)): Outgoing {
  return { destination, tag: 35, router: 0, requestId: BigInt(requestId), sequence: 0, bytes };
}

/** Takes so many envelopes, and ends the iteration. */
export async function take(transport: Transport, count: number): Promise<Envelope[]> {
  const taken: Envelope[] = [];
  if (count === 0) return taken;
  for await (const envelope of transport.receive()) if (taken.push(envelope) === count) break;
  return taken;
}

/** Takes envelopes until the transport ends. */
export async function takeAll(transport: Transport): Promise<Envelope[]> {
  const taken: Envelope[] = [];
  for await (const envelope of transport.receive()) taken.push(envelope);
  return taken;
}

export const idsOf = (envelopes: readonly Envelope[]) => envelopes.map((envelope) => Number(envelope.requestId));

/** A send, watched. */
export interface Watched {
  state: "waiting" | "sent" | "refused";
  error: unknown;
  readonly settled: Promise<void>;
}

export function watch(sending: Promise<void>): Watched {
  const settled = sending.then(
    () => {
      watched.state = "sent";
    },
    (error: unknown) => {
      watched.state = "refused";
      watched.error = error;
    },
  );
  const watched: Watched = { state: "waiting", error: undefined, settled };
  return watched;
}

/** Sends a rank something from itself and takes it, so that whatever was under way before has had its time. */
export async function roundTrip(transport: Transport, times = 3): Promise<void> {
  for (let time = 0; time < times; time++) {
    await transport.send(letter(transport.rank, 0));
    await take(transport, 1);
  }
}

/** Connects a rank as soon as it is not refused: over a wire, the hub hears of a close a moment later. */
export async function connectOnceFree(world: World, rank: number): Promise<Transport> {
  let connected: Transport | undefined;
  for (let attempt = 0; connected === undefined; attempt++) {
    try {
      connected = await world.connect(rank);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return connected;
}

const ATTEMPTS = 1_000;
