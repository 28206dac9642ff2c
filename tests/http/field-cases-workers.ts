import { big, type Case, cut, ID, LONG, NAME, SAFE, U32 } from "./field-words.js";

export const updates: Case[] = [
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
  [
    { topology_domains: { [LONG]: 1 } },
    `Expected topology_domains["${"x".repeat(119)}…] to be ${NAME}, got the number 1.`,
  ],
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
  [{ taints: { a: 1 } }, `Expected taints to be a list, each ${NAME}, got an object.`],
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

export const workers: Case[] = [
  ...updates.map(([body, sentence]): Case => [{ worker_id: 1, ...body }, sentence]),
  [{}, `Expected worker_id to be ${ID}, but it is missing.`],
  ...[null, -1, 1.5, big, "", "..", true, {}].map(
    (id): Case => [{ worker_id: id }, `Expected worker_id to be ${ID}, got `],
  ),
];

export const outputs: Case[] = [-0.1, 1.1, "0.5", {}].map((decay) => [
  { decay_fraction: decay },
  "Expected decay_fraction to be a number from 0 to 1, got ",
]);

export const cached: Case[] = [
  [{}, `Expected cached_tokens to be a whole number from 0 to ${SAFE}, but it is missing.`],
  ...[null, -1, "1", 0.5].map(
    (count): Case => [{ cached_tokens: count }, `Expected cached_tokens to be a whole number from 0 to ${SAFE}, got `],
  ),
];
