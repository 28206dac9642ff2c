import * as kvroute from "kvroute";
import { decide } from "./decide.mjs";

addEventListener("fetch", (event) => event.respondWith(new Response(JSON.stringify(decide(kvroute)))));
