import fc from "fast-check";
import { expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import { GatewayStage } from "./gateway-stage.js";

// Workers come, change, drain and go over HTTP: the router, its selection service and what is answered agree with a map.

interface Naive {
  endpoint: string;
  weight: number;
  isDraining: boolean;
}

type Step =
  | {
      readonly do: "add";
      readonly id: string;
      readonly host: string;
      readonly weight: number;
      readonly blockSize: number;
    }
  | { readonly do: "weigh"; readonly id: string; readonly weight: number }
  | { readonly do: "drain" | "remove"; readonly id: string }
  | { readonly do: "ask" };

const id = fc.constantFrom("a", "b", "7");
const weight = fc.constantFrom(1, 2, 0.5);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("add" as const),
    id,
    host: fc.constantFrom("one.test", "two.test"),
    weight,
    blockSize: fc.constantFrom(64, 64, 64, 16),
  }),
  fc.record({ do: fc.constant("weigh" as const), id, weight }),
  fc.record({ do: fc.constantFrom("drain" as const, "remove" as const), id }),
  fc.record({ do: fc.constant("ask" as const) }),
);

/** Takes a step on the map. Returns the status that is expected. */
function take(model: Map<string, Naive>, step: Step): number {
  if (step.do === "ask") return [...model.values()].some(({ isDraining }) => !isDraining) ? 200 : 503;
  if (step.do === "add") {
    if (step.blockSize !== 64) return 400;
    model.delete(step.id); // it comes back as the last
    model.set(step.id, { endpoint: `http://${step.host}`, weight: step.weight, isDraining: false });
    return 201;
  }
  const known = model.get(step.id);
  if (known === undefined) return 404;
  if (step.do === "weigh") known.weight = step.weight;
  else if (step.do === "drain") known.isDraining = true;
  else model.delete(step.id);
  return 200;
}

async function send(stage: GatewayStage, step: Step): Promise<number> {
  if (step.do === "ask") return (await stage.chat()).status;
  if (step.do === "add") {
    const { id: worker_id, host, weight, blockSize: block_size } = step;
    const reply = await stage.send("POST", "/workers", { worker_id, endpoint: `http://${host}`, weight, block_size });
    return reply.status;
  }
  if (step.do === "remove") return (await stage.send("DELETE", `/workers/${step.id}`)).status;
  const change = step.do === "weigh" ? { weight: step.weight } : { lifecycle: "draining" };
  return (await stage.send("PATCH", `/workers/${step.id}`, change)).status;
}

test("the router, its books and the answers know the same workers after every step", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const stage = new GatewayStage({}, { workers: [] });
      const model = new Map<string, Naive>();
      for (const step of steps) {
        expect(await send(stage, step)).toBe(take(model, step));
        const wanted = [...model].map(([id, { isDraining }]) => ({ id, isDraining }));
        expect(stage.router.stats().workers.map(({ id, isDraining }) => ({ id, isDraining }))).toEqual(wanted);
        const records = [...model].map(([worker_id, { endpoint, weight, isDraining }]) => ({
          ...{ worker_id, endpoint, weight, block_size: 64 },
          lifecycle: isDraining ? "draining" : "schedulable",
        }));
        expect((await stage.send("GET", "/workers")).body).toMatchObject(records);
        expect(stage.isIdle).toBe(true);
      }
    }),
    { numRuns: scaled(100) },
  );
});
