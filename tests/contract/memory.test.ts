import { MemoryNetwork } from "../../src/transport/memory.js";
import { transportContract } from "./transport.js";
import type { TransportUnderTest } from "./world.js";

const memory: TransportUnderTest = {
  name: "MemoryNetwork",
  open: async (limits) => {
    const network = new MemoryNetwork(limits);
    return {
      connect: async (rank) => network.connect(rank),
      kill: (rank) => network.disconnect(rank),
      close: async () => {
        for (const rank of network.ranks) network.disconnect(rank);
      },
    };
  },
};

transportContract(memory);
