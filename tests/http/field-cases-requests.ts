import { big, type Case, cut, I64, ID, LONG, NAME, PROMPT, SAFE, SEGMENT, U32 } from "./field-words.js";

export const partitions: Case[] = [
  [{ ...PROMPT, model_name: 7 }, `Expected model_name to be ${NAME}, got the number 7.`],
  [{ ...PROMPT, routing_group: LONG }, `Expected routing_group to be ${NAME}, got ${cut}.`],
];

export const prompts: Case[] = [
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

export const sessions: Case[] = [
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

export const overrides: Case[] = [
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

export const selects: Case[] = [
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
  [{ ...PROMPT, allowed_worker_ids: 1 }, `Expected allowed_worker_ids to be a list, each ${ID}, got the number 1.`],
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

export const stated = { ...PROMPT, selection_id: "s", worker_id: 1 };

export const reservations: Case[] = [
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

export const advised: Case = [
  { ...PROMPT, advisory: true },
  "Expected advisory to be false, as what is only advice is not booked, got the boolean true.",
];
