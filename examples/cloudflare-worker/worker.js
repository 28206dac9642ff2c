// The selection API on Cloudflare Workers. Requests arrive in any of many isolates, so that the service lives in one
// Durable Object, which all of them ask. Its state is in memory: when the object is moved, workers register again (they
// send POST /workers when they start, and may repeat it) and selections begin with empty caches.
//
//     npx wrangler deploy && npx wrangler secret put KVROUTE_CONTROL_TOKEN

import { SelectionService } from "kvroute";
import { createSelectionApi } from "kvroute/http";

export class Selection {
  #api;

  constructor(_state, env) {
    this.#api = createSelectionApi({ service: new SelectionService(), controlToken: env.KVROUTE_CONTROL_TOKEN });
  }

  fetch(request) {
    return this.#api.fetch(request);
  }
}

export default {
  fetch(request, env) {
    return env.SELECTION.get(env.SELECTION.idFromName("fleet")).fetch(request);
  },
};
