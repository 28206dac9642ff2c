// workerd: what a module makes at global scope, where there is no clock, no randomness and no timer, serves requests.
import { BlockPool, createRouter, hashTokens, PrefixIndex, SelectionCache, SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

const service = new SelectionService();
const api = createSelectionApi({ service });
const pool = new BlockPool({ capacity: 4 });
const index = new PrefixIndex();
const router = createRouter({ workers: [{ id: "a", url: "http://a:8000" }] });
const cache = new SelectionCache();
service.workers.add({ workerId: "a", endpoint: "http://a:8000", blockSize: 16 });
const { sequence } = hashTokens(Uint32Array.from({ length: 32 }), { blockSize: 16 });
index.store({ workerId: "a", dpRank: 0 }, sequence);

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/nothing") return router.handler(request);
    if (pathname !== "/") return api.fetch(request);
    const { worker, selectionId } = service.selectAndReserve({ tokenIds: Array.from({ length: 32 }, () => 0) });
    const { activeRequests } = service.loads()[0].loads[0];
    const { blocks } = index.overlap(sequence)[0];
    return Response.json({ worker, selectionId, activeRequests, blocks, capacity: pool.capacity, cached: cache.size });
  },
};
