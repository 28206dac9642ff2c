import { describe, expect, test } from "vitest";
import { ApiStage, expectError, tokens } from "./api-stage.js";

const PROMPT = { token_ids: tokens(1) };
const big = 2n ** 64n;

/** A body, and how the sentence about it begins. */
type Case = readonly [body: Record<string, unknown>, sentence: string];

const U32 = "a whole number from 0 to 4294967295";
const SAFE = Number.MAX_SAFE_INTEGER;
const I64 = "a whole number from -9223372036854775808 to 9223372036854775807";
const NAME = "a string of at most 1024 characters";
const SEGMENT = 'a string of 1 to 1024 characters other than "." and ".."';
const ID = `a whole number from 0 to 18446744073709551615, or ${SEGMENT}`;
const LONG = "x".repeat(1_025);
const cut = `the string "${"x".repeat(108)}…`;

const partitions: Case[] = [
  [{ ...PROMPT, model_name: 7 }, `Expected model_name to be ${NAME}, got the number 7.`],
  [{ ...PROMPT, routing_group: LONG }, `Expected routing_group to be ${NAME}, got ${cut}.`],
];

const prompts: Case[] = [
  ...partitions,
  [{}, "Expected token_ids to be given, or else sequence_hashes and isl_tokens, but it is missing."],
  [{ token_ids: null }, "Expected token_ids to be given, or else sequence_hashes and isl_tokens, got null."],
  [{ token_ids: "1,2" }, `Expected token_ids to be a list, each ${U32}, got the string "1,2".`],
  [{ token_ids: [1, 2, -1] }, `Expected token_ids[2] to be ${U32}, got the number -1.`],
  [{ token_ids: [1.5] }, `Expected token_ids[0] to be ${U32}, got the number 1.5.`],
  [{ token_ids: [2 ** 32] }, `Expected token_ids[0] to be ${U32}, got the number 4294967296.`],
  [{ token_ids: [null] }, `Expected token_ids[0] to be ${U32}, got null.`],
  [{ mm_routing_info: [] }, "Expected mm_routing_info to be an object, got a list of 0."],
  [
    { mm_routing_info: { routing_token_ids: [true] } },
    `Expected mm_routing_info.routing_token_ids[0] to be ${U32}, got the boolean true.`,
  ],
  [
    { ...PROMPT, mm_routing_info: { block_mm_infos: [{}] } },
    "Expected mm_routing_info.block_mm_infos to be absent, as ",
  ],
  [
    { ...PROMPT, block_mm_infos: [null, {}] },
    "Expected block_mm_infos to be absent, as tokens of images are not hashed",
  ],
  [{ block_hashes: [1] }, "Expected token_ids to be given, or else sequence_hashes and isl_tokens, but it is missing."],
  [{ ...PROMPT, block_hashes: [0.5] }, `Expected block_hashes[0] to be ${I64}, got the number 0.5.`],
  [
    { block_hashes: [1], sequence_hashes: [1, 2], isl_tokens: 8 },
    "Expected sequence_hashes to be a list of 1, as block_hashes is, got a list of 2.",
  ],
  [{ sequence_hashes: [1] }, "Expected isl_tokens to be given beside sequence_hashes, but it is missing."],
  [{ sequence_hashes: [2n ** 63n], isl_tokens: 1 }, `Expected sequence_hashes[0] to be ${I64}, got the number 92233`],
  [
    { sequence_hashes: [1, -(2n ** 63n) - 1n], isl_tokens: 1 },
    `Expected sequence_hashes[1] to be ${I64}, got the number -9`,
  ],
  [{ sequence_hashes: ["1"], isl_tokens: 1 }, `Expected sequence_hashes[0] to be ${I64}, got the string "1".`],
  [
    { sequence_hashes: new Array(262_145).fill(1), isl_tokens: 1 },
    "Expected sequence_hashes to be a list of at most 262144,",
  ],
  [
    { sequence_hashes: [1], isl_tokens: 0 },
    `Expected isl_tokens to be a whole number from 1 to ${SAFE}, got the number 0.`,
  ],
  [
    { ...PROMPT, isl_tokens: big },
    `Expected isl_tokens to be a whole number from 1 to ${SAFE}, got the number ${big}.`,
  ],
  [{ ...PROMPT, lora_name: [] }, `Expected lora_name to be ${NAME}, got a list of 0.`],
  [{ ...PROMPT, cache_salt: 1 }, `Expected cache_salt to be ${NAME}, got the number 1.`],
  [
    { ...PROMPT, is_eagle: true },
    "Expected is_eagle to be false, as Eagle's windows are not hashed here, got the boolean true.",
  ],
  [{ ...PROMPT, is_eagle: 0 }, "Expected is_eagle to be true or false, got the number 0."],
];

const sessions: Case[] = [
  [{ ...PROMPT, session_id: 5 }, `Expected session_id to be ${NAME}, got the number 5.`],
  [{ ...PROMPT, tenant: {} }, `Expected tenant to be ${NAME}, got an object.`],
  [{ ...PROMPT, session_context: "s" }, 'Expected session_context to be an object, got the string "s".'],
  [{ ...PROMPT, session_context: {} }, `Expected session_context.session_id to be ${NAME}, but it is missing.`],
  [
    { ...PROMPT, session_context: { session_id: "s", parent_session_id: 1 } },
    `Expected session_context.parent_session_id to be ${NAME}, got the number 1.`,
  ],
  [
    { ...PROMPT, session_context: { session_id: "s", session_final: "yes" } },
    'Expected session_context.session_final to be true or false, got the string "yes".',
  ],
  [
    { ...PROMPT, session_context: { session_id: "s", input_trigger: "x" } },
    'Expected session_context.input_trigger to be one of user_message, tool_result and other, got the string "x".',
  ],
];

const overrides: Case[] = [
  [{ ...PROMPT, router_config_override: 1 }, "Expected router_config_override to be an object, got the number 1."],
  [
    { ...PROMPT, router_config_override: { track_prefill_tokens: 1 } },
    "Expected router_config_override.track_prefill_tokens to be true or false, got the number 1.",
  ],
  [
    { ...PROMPT, router_config_override: { assume_kv_reuse: false } },
    "Expected router_config_override.assume_kv_reuse to be true, as what is booked always counts as held, got the ",
  ],
  ...[
    "overlap_score_credit",
    "prefill_load_scale",
    "router_temperature",
    "shared_cache_multiplier",
    "overlap_score_weight",
  ].map(
    (field): Case => [
      { ...PROMPT, router_config_override: { [field]: 0.5 } },
      `Expected router_config_override.${field} to be absent, as the policy of the service decides how workers are`,
    ],
  ),
];

const selects: Case[] = [
  ...prompts,
  ...sessions,
  ...overrides,
  ...["", ".", "..", LONG, "\ud800", 7].map(
    (id): Case => [{ ...PROMPT, selection_id: id }, `Expected selection_id to be ${SEGMENT}, got the `],
  ),
  [
    { ...PROMPT, expected_output_tokens: -1 },
    `Expected expected_output_tokens to be a whole number from 0 to ${SAFE}, got the`,
  ],
  [{ ...PROMPT, priority_jump: "high" }, 'Expected priority_jump to be a finite number, got the string "high".'],
  [
    { ...PROMPT, strict_priority: 1.5 },
    `Expected strict_priority to be a whole number from 0 to ${SAFE}, got the number 1.5.`,
  ],
  [
    { ...PROMPT, affinity_target: { worker_id: 1 } },
    "Expected affinity_target to be absent, as a request is bound to a",
  ],
  [{ ...PROMPT, pinned_worker: 1 }, "Expected pinned_worker to be an object, got the number 1."],
  [{ ...PROMPT, pinned_worker: {} }, `Expected pinned_worker.worker_id to be ${ID}, but it is missing.`],
  [
    { ...PROMPT, pinned_worker: { worker_id: big } },
    `Expected pinned_worker.worker_id to be ${ID}, got the number ${big}.`,
  ],
  [
    { ...PROMPT, pinned_worker: { worker_id: 1, dp_rank: -1 } },
    `Expected pinned_worker.dp_rank to be ${U32}, got the number -1.`,
  ],
  [{ ...PROMPT, allowed_worker_ids: 1 }, "Expected allowed_worker_ids to be a list, got the number 1."],
  [{ ...PROMPT, allowed_worker_ids: [1, -1] }, `Expected allowed_worker_ids[1] to be ${ID}, got the number -1.`],
  [
    { ...PROMPT, allowed_worker_ids: new Array(65_537).fill(1) },
    "Expected allowed_worker_ids to be a list of at most 65536,",
  ],
  [{ ...PROMPT, routing_constraints: [] }, "Expected routing_constraints to be an object, got a list of 0."],
  [
    { ...PROMPT, routing_constraints: { required_taints: ["a", 1] } },
    `Expected routing_constraints.required_taints[1] to be ${NAME}, got the number 1.`,
  ],
  [
    { ...PROMPT, routing_constraints: { required_taints: new Array(65).fill("a") } },
    "Expected routing_constraints.required_taints to be a list of at most 64, got a list of 65.",
  ],
  [
    { ...PROMPT, routing_constraints: { preferred_taints: { "a b": "x" } } },
    'Expected routing_constraints.preferred_taints["a b"] to be a finite number, got the string "x".',
  ],
  [
    {
      ...PROMPT,
      routing_constraints: { preferred_taints: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`t${i}`, 1])) },
    },
    "Expected routing_constraints.preferred_taints to be an object of at most 64 taints, got an object.",
  ],
  [{ ...PROMPT, affinity_key: 1 }, `Expected affinity_key to be ${NAME}, got the number 1.`],
  [{ ...PROMPT, explain: "yes" }, 'Expected explain to be true or false, got the string "yes".'],
  [{ ...PROMPT, advisory: 1 }, "Expected advisory to be true or false, got the number 1."],
];

const stated = { ...PROMPT, selection_id: "s", worker_id: 1 };

const reservations: Case[] = [
  ...[...partitions, ...sessions, ...overrides].map(([body, sentence]): Case => [{ ...stated, ...body }, sentence]),
  ...prompts.map(([body, sentence]): Case => [{ selection_id: "s", worker_id: 1, ...body }, sentence]),
  [{}, `Expected selection_id to be ${SEGMENT}, but it is missing.`],
  [{ selection_id: "s", model_name: 1 }, `Expected model_name to be ${NAME}, got the number 1.`],
  [{ ...stated, worker_id: -1 }, `Expected worker_id to be ${ID}, got the number -1.`],
  [{ ...stated, worker_id: "" }, `Expected worker_id to be ${ID}, got the string "".`],
  [{ ...stated, dp_rank: 0.5 }, `Expected dp_rank to be ${U32}, got the number 0.5.`],
  [
    { ...stated, expected_output_tokens: "1" },
    `Expected expected_output_tokens to be a whole number from 0 to ${SAFE}, got the`,
  ],
  [
    { ...stated, effective_prefill_tokens: -1 },
    `Expected effective_prefill_tokens to be a whole number from 0 to ${SAFE}, got`,
  ],
  [
    { ...stated, effective_prefill_tokens: 5 },
    "Expected effective_prefill_tokens to be at most the 4 tokens of the prompt, got the number 5.",
  ],
  [
    { selection_id: "s", worker_id: 1, sequence_hashes: [1], isl_tokens: 9, effective_prefill_tokens: 10 },
    "Expected effective_prefill_tokens to be at most the 9 tokens of the prompt, got the number 10.",
  ],
  [
    { ...stated, track_prefill_tokens: "no" },
    'Expected track_prefill_tokens to be true or false, got the string "no".',
  ],
];

const updates: Case[] = [
  ...[
    "model_name",
    "routing_group",
    "endpoint",
    "kv_events_endpoint",
    "replay_endpoint",
    "stable_routing_id",
    "kv_transfer_domain",
    "router_hint_worker_type",
  ].map((field): Case => [{ [field]: 5 }, `Expected ${field} to be ${NAME}, got the number 5.`]),
  ...["kv_events_endpoints", "topology_domains", "router_hint_source_control_endpoints"].flatMap((field): Case[] => [
    [{ [field]: [] }, `Expected ${field} to be an object, got a list of 0.`],
    [{ [field]: { "3": 1 } }, `Expected ${field}["3"] to be ${NAME}, got the number 1.`],
  ]),
  [{ block_size: 0 }, "Expected block_size to be a whole number from 1 to 4096, got the number 0."],
  [{ block_size: 4_097 }, "Expected block_size to be a whole number from 1 to 4096, got the number 4097."],
  [{ data_parallel_start_rank: -1 }, `Expected data_parallel_start_rank to be ${U32}, got the number -1.`],
  [
    { data_parallel_size: 1_025 },
    "Expected data_parallel_size to be a whole number from 1 to 1024, got the number 1025.",
  ],
  [
    { max_num_batched_tokens: 0 },
    `Expected max_num_batched_tokens to be a whole number from 1 to ${SAFE}, got the number 0.`,
  ],
  [{ total_kv_blocks: big }, `Expected total_kv_blocks to be a whole number from 1 to ${SAFE}, got the number ${big}.`],
  [{ is_eagle: true }, "Expected is_eagle to be false, as Eagle's windows are not hashed here, got the boolean true."],
  [{ taints: { a: 1 } }, "Expected taints to be a list, got an object."],
  [{ taints: ["a", LONG] }, `Expected taints[1] to be ${NAME}, got ${cut}.`],
  [{ taints: new Array(65).fill("a") }, "Expected taints to be a list of at most 64, got a list of 65."],
  [{ weight: 0 }, "Expected weight to be a finite number above 0, got the number 0."],
  [
    { kv_transfer_enforcement: "maybe" },
    'Expected kv_transfer_enforcement to be one of required and preferred, got the string "maybe".',
  ],
  [
    { kv_transfer_preferred_weight: true },
    "Expected kv_transfer_preferred_weight to be a finite number, got the boolean true.",
  ],
];

const workers: Case[] = [
  ...updates.map(([body, sentence]): Case => [{ worker_id: 1, ...body }, sentence]),
  [{}, `Expected worker_id to be ${ID}, but it is missing.`],
  ...[null, -1, 1.5, big, "", "..", true, {}].map(
    (id): Case => [{ worker_id: id }, `Expected worker_id to be ${ID}, got `],
  ),
];

const outputs: Case[] = [-0.1, 1.1, "0.5", {}].map((decay) => [
  { decay_fraction: decay },
  "Expected decay_fraction to be a number from 0 to 1, got ",
]);

const cached: Case[] = [
  [{}, `Expected cached_tokens to be a whole number from 0 to ${SAFE}, but it is missing.`],
  ...[null, -1, "1", 0.5].map(
    (count): Case => [{ cached_tokens: count }, `Expected cached_tokens to be a whole number from 0 to ${SAFE}, got `],
  ),
];

const advised: Case = [
  { ...PROMPT, advisory: true },
  "Expected advisory to be false, as what is only advice is not booked, got the boolean true.",
];

describe.each([
  ["POST", "/select", selects],
  ["POST", "/select_and_reserve", [...selects, advised]],
  ["POST", "/reservations", reservations],
  ["POST", "/potential_loads", prompts],
  ["POST", "/overlap_scores", prompts],
  ["POST", "/workers", workers],
  ["PATCH", "/workers/1", updates],
  ["POST", "/reservations/live/output_block", outputs],
  ["POST", "/reservations/live/cached_tokens", cached],
] as const)("%s %s with a bad value names its path, 400, and changes nothing:", (method, path, cases) => {
  const stage = new ApiStage().add({ workerId: 1 });
  stage.service.reserve({ selectionId: "live", workerId: 1, tokenIds: [1, 2, 3, 4] });
  const state = () => JSON.stringify([stage.service.stats(), stage.service.loads(), stage.service.workers.list()]);
  const before = state();

  test.each(cases.map(([body, sentence]) => [sentence, body] as const))("%s", async (sentence, body) => {
    const reply = await stage.send(method, path, body);
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error.slice(0, sentence.length)).toBe(sentence);
    expect(reply.body.error.length).toBeLessThan(400);
    expect(state()).toBe(before);
  });

  test.each([
    ["[]", "a list of 0"],
    ["null", "null"],
    ['"x"', 'the string "x"'],
    ["12345678901234567890123", "the number 1.2345678901234568e+22"],
  ])("Expected the body to be an object, got %s", async (raw, got) => {
    const reply = await stage.send(method, path, raw);
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error).toBe(`Expected the body to be an object, got ${got}.`);
  });
});

test.each(["18446744073709551616", "99999999999999999999"])("no worker can have the id %s", async (id) => {
  const { send } = new ApiStage();
  const reply = await send("DELETE", `/workers/${id}`);
  expectError(reply, 400, "KVROUTE_HTTP_FIELD");
  expect(reply.body.error).toBe(`Expected worker_id to be ${ID}, got the number ${id}.`);
});
