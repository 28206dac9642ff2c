import { isObject, type JsonObject, jsonOf, listOf } from "./body.js";
import { type CanonicalText, Mark } from "./canonical-text.js";
import { withoutCacheControl } from "./conversation.js";

/** Writes the tools that a model may call. They stand in front of the messages, as nearly all chat templates have them. */
export function writeTools(to: CanonicalText, tools: unknown): void {
  for (const tool of listOf(tools)) {
    if (to.isFull) break;
    writeTool(to, tool);
  }
}

function writeTool(to: CanonicalText, tool: unknown): void {
  const definition = definitionOf(tool);
  if (definition === undefined) {
    to.field(Mark.value, jsonOf(withoutCacheControl(tool)));
    return;
  }
  const { name, description, parameters, input_schema: schema = parameters, ...extra } = definition;
  to.field(Mark.tool, name);
  to.field(Mark.description, description);
  to.field(Mark.schema, jsonOf(schema));
  const fields = jsonOf(extra);
  if (fields !== "{}") to.field(Mark.extra, fields);
}

/** The fields of a function, which the APIs nest and call differently; undefined for tools of other kinds. */
function definitionOf(tool: unknown): JsonObject | undefined {
  if (!isObject(tool)) return undefined;
  const { type = "custom", function: nested, cache_control: _, ...own } = tool;
  if (type !== "function" && type !== "custom") return undefined;
  const definition = isObject(nested) ? { ...nested, ...own } : own;
  return typeof definition["name"] === "string" ? definition : undefined;
}
