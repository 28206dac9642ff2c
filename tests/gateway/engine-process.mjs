// A fake engine in a process of its own, on the built package. It says where it listens, and answers "stats".
import { serveFakeEngine } from "kvroute/testing/node";

const engine = await serveFakeEngine(JSON.parse(process.argv[2] ?? "{}"));
process.on("message", () => process.send?.({ stats: engine.stats(), calls: engine.calls.length }));
process.on("disconnect", () => process.exit());
process.send?.({ url: engine.url });
