import { generator } from "../prng.js";

const BODIES = 64;
const FAMILIES = 8;
const WORDS = [
  "the",
  "of",
  "cache",
  "blocks",
  "router",
  "a",
  "prefix",
  "that",
  "engine",
  "is",
  "shared",
  "with",
  "token",
];

/** Bodies of so many bytes: prompts of a few families, each with a first half of its own that its members share. */
export function bodiesOf(bytes: number, isStream: boolean): readonly string[] {
  const families = Array.from({ length: FAMILIES }, (_, family) => textOf(bytes / 2, family));
  return Array.from({ length: BODIES }, (_, index) => {
    const frame = (content: string) => [
      { role: "system", content: families[index % FAMILIES] },
      { role: "user", content },
    ];
    const empty = JSON.stringify({ model: "m", messages: frame(""), stream: isStream });
    const content = textOf(bytes - empty.length, FAMILIES + index);
    return JSON.stringify({ model: "m", messages: frame(content), stream: isStream });
  });
}

function textOf(bytes: number, seed: number): string {
  const next = generator(seed);
  let text = "";
  while (text.length < bytes) text += `${WORDS[next() % WORDS.length]} `;
  return text.slice(0, Math.max(0, bytes));
}
