import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KvrouteError } from "../../src/errors.js";
import { scaled } from "../support/scale.js";
import { ApiStage, hashes, tokens } from "./api-stage.js";

describe("over HTTP the service does what it does without", () => {
  const id = fc.constantFrom("a", "b", "c");
  const prompt = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 2 }));
  const call = fc.oneof(
    fc.record({ verb: fc.constant("add" as const), worker: fc.constantFrom<number | string>(1, "1", 2) }),
    fc.record({ verb: fc.constant("remove" as const), worker: fc.constantFrom<number | string>(1, "1", 2) }),
    fc.record({ verb: fc.constant("select" as const), id, prompt }),
    fc.record({ verb: fc.constant("both" as const), id, prompt }),
    fc.record({ verb: fc.constant("hashes" as const), id, prompt }),
    fc.record({ verb: fc.constant("reserve" as const), id }),
    fc.record({ verb: fc.constant("state" as const), id, prompt, worker: fc.constantFrom<number | string>(1, "1", 2) }),
    fc.record({ verb: fc.constantFrom("prefill", "output", "touch", "free"), id }),
  );
  type Call = typeof call extends fc.Arbitrary<infer Value> ? Value : never;

  /** Does a call by HTTP. Returns its status. */
  async function byHttp({ send }: ApiStage, made: Call): Promise<number> {
    const post = async (path: string, sent?: unknown) => (await send("POST", path, sent)).status;
    const segment = (worker: unknown) => (typeof worker === "string" ? `%22${worker}%22` : String(worker));
    switch (made.verb) {
      case "add":
        return post("/workers", { worker_id: made.worker, block_size: 4 });
      case "remove":
        return (await send("DELETE", `/workers/${segment(made.worker)}`)).status;
      case "select":
        return post("/select", { selection_id: made.id, token_ids: tokens(...made.prompt) });
      case "both":
        return post("/select_and_reserve", { selection_id: made.id, token_ids: tokens(...made.prompt) });
      case "hashes": {
        const [blocks, own] = made.prompt;
        const sent = { selection_id: made.id, sequence_hashes: hashes(blocks, own), isl_tokens: blocks * 4 };
        return post("/select_and_reserve", sent);
      }
      case "reserve":
        return post("/reservations", { selection_id: made.id });
      case "state":
        return post("/reservations", {
          selection_id: made.id,
          worker_id: made.worker,
          token_ids: tokens(...made.prompt),
        });
      case "free":
        return (await send("DELETE", `/reservations/${made.id}`)).status;
      default:
        return post(
          `/reservations/${made.id}/${{ prefill: "prefill_complete", output: "output_block", touch: "touch" }[made.verb]}`,
        );
    }
  }

  /** Does the same call on a service. Returns the status that it maps to. */
  function direct({ service }: ApiStage, made: Call): number {
    const answer = (status: number, act: () => unknown): number => {
      try {
        return act() === false ? 404 : status;
      } catch (error) {
        if (error instanceof KvrouteError) return error.status ?? 500;
        throw error;
      }
    };
    switch (made.verb) {
      case "add":
        return answer(201, () => service.workers.add({ workerId: made.worker, blockSize: 4 }));
      case "remove":
        return answer(200, () => service.workers.remove(made.worker));
      case "select":
        return answer(200, () => service.select({ selectionId: made.id, tokenIds: tokens(...made.prompt) }));
      case "both":
      case "hashes":
        return answer(200, () => service.selectAndReserve({ selectionId: made.id, tokenIds: tokens(...made.prompt) }));
      case "reserve":
        return answer(201, () => service.reserve({ selectionId: made.id }));
      case "state": {
        const { id: selectionId, worker: workerId } = made;
        return answer(201, () => service.reserve({ selectionId, workerId, tokenIds: tokens(...made.prompt) }));
      }
      case "prefill":
        return answer(200, () => service.prefillComplete(made.id));
      case "output":
        return answer(200, () => service.outputBlock(made.id));
      case "touch":
        return answer(200, () => service.touch(made.id));
      default:
        return answer(200, () => service.free(made.id));
    }
  }

  test("call by call", async () => {
    const path = fc.array(call, { minLength: 5, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(path, async (calls) => {
        const [http, twin] = [new ApiStage(), new ApiStage()];
        for (const made of calls) {
          const status = await byHttp(http, made);
          expect({ made, status }).toEqual({ made, status: direct(twin, made) });
          expect(http.service.stats()).toEqual(twin.service.stats());
          expect(http.service.loads()).toEqual(twin.service.loads());
        }
      }),
      { numRuns: scaled(100) },
    );
  });
});
