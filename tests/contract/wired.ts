import { TransportHub } from "../../src/transport/hub.js";
import type { TransportLimits } from "../../src/transport/limits.js";
import type { ConnectedTransport } from "../../src/transport/wire/end.js";
import { until } from "../support/until.js";
import type { World } from "./world.js";

/** A world of ends that are connected to a hub. */
export interface Wiring {
  readonly hub: TransportHub;
  /** Greets the hub over a new channel. */
  connect(rank: number): Promise<ConnectedTransport>;
  /** Breaks the channel of a rank; without it, the hub disconnects the rank. */
  kill?(rank: number): void;
  close(): Promise<void>;
}

export function hubOf(limits: TransportLimits): TransportHub {
  return new TransportHub(limits);
}

/** Makes a world of a wiring: those who connect are known to all others before the test goes on. */
export function wiredWorld({ hub, connect, kill, close }: Wiring): World {
  const ends = new Map<number, ConnectedTransport>();
  return {
    connect: async (rank) => {
      const end = await connect(rank);
      ends.set(rank, end);
      const others = () => hub.ranks.flatMap((other) => ends.get(other) ?? []);
      await until(
        () => others().every(({ ranks }) => ranks.length === 0 || ranks.includes(rank)),
        `all know rank ${rank}`,
      );
      return end;
    },
    kill: (rank) => (kill === undefined ? hub.disconnect(rank) : kill(rank)),
    close,
  };
}
