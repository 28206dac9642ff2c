import { isObject, type JsonObject, listOf } from "./body.js";
import type { CanonicalText } from "./canonical-text.js";
import { writeContent } from "./content.js";
import { Conversation } from "./conversation.js";
import { writeTools } from "./tools.js";

/** Writes a body of responses. */
export function writeResponses(text: CanonicalText, body: JsonObject): void {
  writeTools(text, body["tools"]);
  const to = new Conversation(text);
  const { instructions, input } = body;
  if (instructions !== undefined && instructions !== null) {
    to.open("system");
    writeContent(to, instructions);
  }
  for (const item of typeof input === "string" ? [{ role: "user", content: input }] : listOf(input)) {
    if (to.isFull) break;
    if (isObject(item)) writeItem(to, item);
    else to.stray(item);
  }
  to.close();
}

// Calls and reasoning are items of their own here, and belong to the message of the assistant that they stand beside.
function writeItem(to: Conversation, item: JsonObject): void {
  switch (item["type"] ?? "message") {
    case "message":
      if (item["role"] !== "assistant" || !to.isReasoning) to.open(item["role"]);
      writeContent(to, item["content"]);
      break;
    case "function_call":
      to.continue("assistant");
      to.call({ id: item["call_id"], name: item["name"], args: item["arguments"] });
      break;
    case "function_call_output":
      to.open("tool", { id: item["call_id"] });
      writeContent(to, item["output"]);
      break;
    case "reasoning":
      to.open("assistant");
      writeReasoning(to, item);
      break;
    default:
      to.stray(item); // a search, an approval, a reference to what the engine has in store
  }
}

function writeReasoning(to: Conversation, { summary, content, encrypted_content: sealed }: JsonObject): void {
  for (const part of [...listOf(summary), ...listOf(content)]) {
    if (isObject(part) && typeof part["text"] === "string") to.reasoning(part["text"]);
    else to.value(part);
  }
  if (typeof sealed === "string") to.reasoning(sealed);
}
