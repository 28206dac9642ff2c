// workerd: the first request finds the module imported, the second asks for the first decision.

import * as kvroute from "kvroute";
import { decide } from "./decide.mjs";

export default {
  fetch: (request) => new Response(request.url.endsWith("/decide") ? JSON.stringify(decide(kvroute)) : "imported"),
};
