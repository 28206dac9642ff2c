import { undiciUpstream } from "../../src/node/undici-upstream.js";
import { upstreamContract } from "./upstream.js";

upstreamContract({
  name: "undici",
  open: () => {
    const upstream = undiciUpstream();
    return { upstream, close: () => upstream.close() };
  },
});
