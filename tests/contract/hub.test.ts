import { transportContract } from "./transport.js";
import { hubOf, wiredWorld } from "./wired.js";

transportContract({
  name: "TransportHub, in one process",
  open: async (limits) => {
    const hub = hubOf(limits);
    return wiredWorld({ hub, connect: (rank) => hub.connect(rank), close: () => hub.close() });
  },
});
