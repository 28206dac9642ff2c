// The selection API in Bun.
//
//     KVROUTE_CONTROL_TOKEN=secret PORT=8787 bun main.js

import { SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

const api = createSelectionApi({
  service: new SelectionService(),
  controlToken: process.env.KVROUTE_CONTROL_TOKEN,
});

const server = Bun.serve({
  port: Number(process.env.PORT ?? 8787),
  fetch: (request) => api.fetch(request),
});
console.log(`listening on http://localhost:${server.port}`);
