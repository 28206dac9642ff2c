// The selection API in Deno.
//
//     KVROUTE_CONTROL_TOKEN=secret PORT=8787 deno run --allow-net --allow-env=KVROUTE_CONTROL_TOKEN,PORT main.js

import { SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

const api = createSelectionApi({
  service: new SelectionService(),
  controlToken: Deno.env.get("KVROUTE_CONTROL_TOKEN"),
});

Deno.serve({
  port: Number(Deno.env.get("PORT") ?? 8787),
  onListen: ({ port }) => console.log(`listening on http://localhost:${port}`),
  handler: (request) => api.fetch(request),
});
