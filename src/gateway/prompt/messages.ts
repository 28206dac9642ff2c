import { isObject, type JsonObject, listOf } from "./body.js";
import type { CanonicalText } from "./canonical-text.js";
import { writeContent, writePart } from "./content.js";
import { Conversation } from "./conversation.js";
import { writeTools } from "./tools.js";

/** How a line for the provider's accounts begins. It is new in each request, so engines leave it out of the prompt. */
const BILLING = "x-anthropic-billing-header";

/** Writes a body of Anthropic messages. */
export function writeMessages(text: CanonicalText, body: JsonObject): void {
  writeTools(text, body["tools"]);
  const to = new Conversation(text);
  const { system } = body;
  if (system !== undefined && system !== null) {
    to.open("system");
    writeContent(to, Array.isArray(system) ? system.filter((block) => !isBilling(block)) : system);
  }
  for (const message of listOf(body["messages"])) {
    if (to.isFull) break;
    if (isObject(message)) writeMessage(to, message);
    else to.stray(message);
  }
  to.close();
}

function isBilling(block: unknown): boolean {
  return isObject(block) && typeof block["text"] === "string" && block["text"].startsWith(BILLING);
}

function writeMessage(to: Conversation, { role, content }: JsonObject): void {
  if (Array.isArray(content) && content.some(isResult)) {
    writeResults(to, role, content);
  } else {
    to.open(role);
    writeContent(to, content);
  }
}

// Results of tools are parts of the user's message here, and messages of their own in a prompt.
function writeResults(to: Conversation, role: unknown, parts: readonly unknown[]): void {
  let isBetween = true;
  for (const part of parts) {
    if (to.isFull) break;
    if (isResult(part)) {
      to.open("tool", { id: part["tool_use_id"], isError: part["is_error"] === true ? true : undefined });
      writeContent(to, part["content"]);
      isBetween = true;
    } else {
      if (isBetween) to.open(role);
      writePart(to, part);
      isBetween = false;
    }
  }
}

function isResult(part: unknown): part is JsonObject {
  return isObject(part) && part["type"] === "tool_result";
}
