import { isObject, type JsonObject, listOf } from "./body.js";
import { type CanonicalText, Mark } from "./canonical-text.js";
import { writeContent } from "./content.js";
import { Conversation } from "./conversation.js";
import { writeTools } from "./tools.js";

/** Writes a body of chat completions. */
export function writeChat(text: CanonicalText, body: JsonObject): void {
  writeTools(text, body["tools"]);
  writeTools(text, body["functions"]);
  for (const document of listOf(body["documents"])) text.field(Mark.document, document);
  const to = new Conversation(text);
  for (const message of listOf(body["messages"])) {
    if (to.isFull) break;
    if (isObject(message)) writeMessage(to, message);
    else to.stray(message);
  }
  to.close();
}

function writeMessage(to: Conversation, message: JsonObject): void {
  const { role, name, tool_call_id: id, content, reasoning_content: thought, reasoning = thought } = message;
  to.open(role, { name, id });
  if (typeof reasoning === "string" && reasoning !== "") to.reasoning(reasoning);
  writeContent(to, content);
  for (const field of ["refusal", "audio"]) {
    if (message[field] !== undefined && message[field] !== null) to.value({ [field]: message[field] });
  }
  for (const call of listOf(message["tool_calls"])) writeCall(to, call);
  const old = message["function_call"];
  if (isObject(old)) to.call({ id: "", name: old["name"], args: old["arguments"] });
}

function writeCall(to: Conversation, call: unknown): void {
  const called = isObject(call) ? call["function"] : undefined;
  if (isObject(call) && isObject(called)) to.call({ id: call["id"], name: called["name"], args: called["arguments"] });
  else to.value(call);
}
