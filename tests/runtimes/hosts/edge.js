// Vercel's edge runtime: a fetch handler.
import { modules } from "./modules.js";
import { printed, runPortable } from "./portable.js";

addEventListener("fetch", (event) => {
  event.respondWith(runPortable(modules).then((report) => new Response(printed(report))));
});
