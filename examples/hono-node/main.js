// The selection API under a path of your own Hono app, in Node.
//
//     KVROUTE_CONTROL_TOKEN=secret PORT=8787 node main.js

import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

const service = new SelectionService();
const api = createSelectionApi({ service, controlToken: process.env.KVROUTE_CONTROL_TOKEN });

const app = new Hono();
app.get("/", (context) => context.text(`${service.workers.size} workers`));
app.mount("/kvroute", api.fetch);

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 8787) }, ({ port }) => {
  console.log(`listening on http://localhost:${port}`);
});
