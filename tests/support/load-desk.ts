import { loadDesk } from "../../src/gateway/load-desk.js";

// On a virtual clock nothing loads: what answers requests is there before them, as after the first request of a program.
await loadDesk();
