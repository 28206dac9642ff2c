import { expect, test } from "vitest";
import { promptKeyOf } from "../../src/gateway/prompt.js";

const key = (path: Parameters<typeof promptKeyOf>[0], body: unknown) =>
  promptKeyOf(path, new TextEncoder().encode(JSON.stringify(body)), { blockBytes: 16, tenant: "" });

test("a conversation is the same prompt through chat completions, responses and messages", () => {
  const chat = key("/v1/chat/completions", {
    model: "m",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is the capital of France?" },
    ],
  });
  const responses = key("/v1/responses", {
    model: "m",
    instructions: "Be brief.",
    input: "What is the capital of France?",
  });
  const messages = key("/v1/messages", {
    model: "m",
    system: [{ type: "text", text: "Be brief." }],
    messages: [{ role: "user", content: [{ type: "text", text: "What is the capital of France?" }] }],
  });
  expect(chat.sequenceHashes.length).toBeGreaterThan(2);
  expect(responses.sequenceHashes).toEqual(chat.sequenceHashes);
  expect(messages.sequenceHashes).toEqual(chat.sequenceHashes);
  expect(responses.fingerprint).toBe(chat.fingerprint);
});
