import { afterEach, describe } from "vitest";
import type { TransportLimits } from "../../src/transport/limits.js";
import { deliveryContract } from "./delivery.js";
import { endingContract } from "./ending.js";
import { pressureContract } from "./pressure.js";
import { refusalContract } from "./refusal.js";
import type { TransportUnderTest, World } from "./world.js";

/** Opens a world that is closed after the test. */
export type OpenWorld = (limits?: TransportLimits) => Promise<World>;

/** What every implementation of a transport keeps. */
export function transportContract(subject: TransportUnderTest): void {
  describe(`${subject.name}: the contract of transports`, () => {
    const worlds: World[] = [];
    afterEach(async () => {
      for (const world of worlds.splice(0)) await world.close();
    });
    const open: OpenWorld = async (limits = {}) => {
      const world = await subject.open(limits);
      worlds.push(world);
      return world;
    };
    deliveryContract(open);
    pressureContract(open);
    endingContract(open);
    refusalContract(open);
  });
}
