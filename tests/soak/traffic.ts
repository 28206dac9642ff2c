import { Prng } from "../../src/sim/prng.js";

/** What a client asks, and when it loses interest. */
export interface Plan {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly isStream: boolean;
  /** Names what the answer depends on: the same prompt is answered with the same words by every engine. */
  readonly key: string;
  readonly abort: Abort | undefined;
}

/** The moment at which a client goes: after so many chunks of the answer, or after so many milliseconds. */
export type Abort = { readonly afterChunks: number } | { readonly afterMs: number };

const PREFIXES = 8;
const TAILS = 32;
const PREFIX_WORDS = 300;
const ABORTED = 0.05;
const MODEL = "fake-model";

const prefixes = Array.from({ length: PREFIXES }, (_, prefix) => {
  const chance = new Prng(prefix);
  return Array.from({ length: PREFIX_WORDS }, () => chance.uint32().toString(36)).join(" ");
});

type Make = (system: string, user: string) => Record<string, unknown>;

/** How each interface is asked. */
const BODIES: readonly (readonly [string, Make])[] = [
  [
    "/v1/chat/completions",
    (system, content) => ({
      messages: [
        { role: "system", content: system },
        { role: "user", content },
      ],
    }),
  ],
  ["/v1/completions", (system, user) => ({ prompt: `${system} ${user}` })],
  ["/v1/responses", (instructions, input) => ({ instructions, input })],
  ["/v1/messages", (system, content) => ({ system, messages: [{ role: "user", content }], max_tokens: 64 })],
  ["/v1/embeddings", (system, user) => ({ input: `${system} ${user}` })],
];

/** Plans the request with a number: the same of the same seed. */
export function planOf(seed: number, index: number): Plan {
  const chance = new Prng(seed * 2 ** 24 + index);
  const [path, make] = BODIES[chance.below(BODIES.length)] as (typeof BODIES)[number];
  const [prefix, tail] = [chance.below(PREFIXES), chance.below(TAILS)];
  const isStream = path !== "/v1/embeddings" && chance.random() < 0.5;
  const body = { model: MODEL, ...make(prefixes[prefix] as string, `And number ${tail}?`) };
  return {
    path,
    body: isStream ? { ...body, stream: true } : body,
    isStream,
    key: `${path} ${prefix} ${tail}`,
    abort: chance.random() < ABORTED ? abortOf(chance) : undefined,
  };
}

function abortOf(chance: Prng): Abort {
  return chance.random() < 0.5 ? { afterChunks: 1 + chance.below(4) } : { afterMs: chance.below(50) };
}
