import fc from "fast-check";
import { expect, test } from "vitest";
import { printJson } from "../../src/http/json.js";
import { scaled } from "../support/scale.js";
import { ApiStage } from "./api-stage.js";

const POSTS = [
  "/workers",
  "/select",
  "/select_and_reserve",
  "/reservations",
  "/potential_loads",
  "/overlap_scores",
  "/reservations/live/output_block",
  "/reservations/live/cached_tokens",
];

const stageWithBooking = () => {
  const stage = new ApiStage().add({ workerId: 1 }, { workerId: "1" });
  stage.service.reserve({ selectionId: "live", workerId: 1, tokenIds: [1, 2, 3, 4] });
  return stage;
};

const odd = fc.oneof(
  fc.jsonValue(),
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 65n }),
  fc.constantFrom<unknown>(1, "1", 0, -1, 0.5, 4, 4096, null, true, "", "..", "live", [], {}, [1], [1n], {
    worker_id: 1,
  }),
);

const FIELDS = [
  "worker_id",
  "model_name",
  "routing_group",
  "endpoint",
  "block_size",
  "data_parallel_size",
  "total_kv_blocks",
  "weight",
  "taints",
  "token_ids",
  "sequence_hashes",
  "block_hashes",
  "isl_tokens",
  "mm_routing_info",
  "selection_id",
  "dp_rank",
  "pinned_worker",
  "allowed_worker_ids",
  "routing_constraints",
  "router_config_override",
  "session_id",
  "session_context",
  "expected_output_tokens",
  "effective_prefill_tokens",
  "track_prefill_tokens",
  "decay_fraction",
  "cached_tokens",
  "advisory",
  "explain",
  "__proto__",
  "constructor",
  "toString",
];

const body = fc.array(fc.tuple(fc.constantFrom(...FIELDS), odd), { maxLength: 6 }).map((fields) => {
  const own = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of fields) own[name] = value;
  return printJson(own);
});

/** A body that would be served, with one thing put into it that is not. */
const nearly = fc
  .tuple(fc.constantFrom(...FIELDS), odd)
  .map(([name, value]) =>
    printJson({ worker_id: 1, selection_id: "x", token_ids: [1, 2, 3, 4, 5], cached_tokens: 1, [name]: value }),
  );

const spoilt = fc
  .tuple(nearly, fc.nat(), fc.constantFrom("", "{", "]", '"', "\\", "9", "e", "\u0000", "\ud800"))
  .map(([text, at, what]) => text.slice(0, at % (text.length + 1)) + what + text.slice((at % (text.length + 1)) + 1));

test("no body is answered with a 500, and what is refused changes nothing", async () => {
  let stage = stageWithBooking();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...POSTS), fc.oneof(body, nearly, spoilt, fc.string()), async (path, raw) => {
      const state = () => printJson([stage.service.stats(), stage.service.loads(), stage.service.workers.list()]);
      const before = state();
      const reply = await stage.send("POST", path, raw);
      expect([200, 201, 400, 404, 409, 429, 503]).toContain(reply.status);
      if (reply.status >= 400) {
        expect(Object.keys(reply.body)).toEqual(["error", "code"]);
        expect(state()).toBe(before);
      } else stage = stageWithBooking();
    }),
    { numRuns: scaled(1_000) },
  );
});

test("no path is answered with a 500", async () => {
  const { send } = stageWithBooking();
  const segment = fc.oneof(
    fc.constantFrom("workers", "reservations", "live", "1", '"1"', "%", "%ff", "..", ""),
    fc.webSegment(),
  );
  const paths = fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join("/")}`);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("GET", "POST", "PATCH", "PUT"), paths, async (method, path) => {
      expect((await send(method, path)).status).toBeOneOf([200, 201, 400, 404, 405, 503]);
    }),
    { numRuns: scaled(1_000) },
  );
});
