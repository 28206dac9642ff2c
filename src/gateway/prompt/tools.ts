import { isObject, type JsonObject, jsonOf, listOf } from "./body.js";
import { type CanonicalText, Mark, type MarkOf } from "./canonical-text.js";
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
    marked(to, Mark.value, jsonOf(withoutCacheControl(tool)));
    return;
  }
  const { name, description, parameters, input_schema: schema = parameters, ...extra } = definition;
  marked(to, Mark.tool, name as string);
  marked(to, Mark.description, typeof description === "string" ? description : jsonOf(description));
  marked(to, Mark.schema, jsonOf(schema));
  const fields = jsonOf(extra);
  if (fields !== "{}") marked(to, Mark.extra, fields);
}

/** The fields of a function, which the APIs nest and call differently; undefined for tools of other kinds. */
function definitionOf(tool: unknown): JsonObject | undefined {
  if (!isObject(tool)) return undefined;
  const { type = "custom", function: nested, cache_control: _, ...own } = tool;
  if (type !== "function" && type !== "custom") return undefined;
  const definition = isObject(nested) ? { ...nested, ...own } : own;
  return typeof definition["name"] === "string" ? definition : undefined;
}

function marked(to: CanonicalText, mark: MarkOf, text: string): void {
  to.mark(mark);
  to.text(text);
}
