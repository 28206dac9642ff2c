// A page under a content security policy: what comes of each way to a pool.
import { BlockPool, compileCore, SelectionCache } from "./node_modules/kvroute/dist/kvroute.browser.js";

const ways = {
  lazily: () => new BlockPool({ capacity: 4 }),
  compileCore: async () => new BlockPool({ capacity: 4, module: await compileCore() }),
  async streaming() {
    const module = await WebAssembly.compileStreaming(fetch("/node_modules/kvroute/dist/core/core.wasm"));
    return new BlockPool({ capacity: 4, module });
  },
};

const said = {};
for (const [way, make] of Object.entries(ways)) {
  try {
    const pool = await make();
    pool.reserve([], 4);
    said[way] = "pool";
  } catch (error) {
    said[way] = `${error.code}: ${error.message}`;
  }
}
said.cache = String(new SelectionCache().size);
document.querySelector("pre").textContent = JSON.stringify(said);
