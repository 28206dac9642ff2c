// The selection API as a Vercel function on the edge runtime: put this file at api/[...path].js.
//
// Each isolate has a service of its own, which forgets when the isolate ends. That is enough for the choice of a worker by
// prefix; where several isolates must see each other's load, let a Durable Object hold the service
// (examples/cloudflare-worker), or one process (examples/hono-node).

import { SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

export const config = { runtime: "edge" };

const service = new SelectionService();
for (const endpoint of ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]) {
  service.workers.add({ workerId: endpoint, endpoint, blockSize: 16 });
}
const api = createSelectionApi({ service });

export default (request) => api.fetch(request);
