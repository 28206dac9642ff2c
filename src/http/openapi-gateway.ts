import { DIALECT_PATHS, type Dialect, dialectOf } from "../gateway/dialect.js";

type Json = Record<string, unknown>;

/** Whose the protocols are. A path that is of none of them is handed on as it is. */
const PROTOCOLS: Readonly<Record<Dialect, string>> = {
  chat: "OpenAI's chat completions",
  completions: "OpenAI's completions",
  responses: "OpenAI's responses",
  messages: "Anthropic's messages",
  embeddings: "OpenAI's embeddings",
};

const anything: Json = { type: "object" };
const asJson = { "application/json": { schema: anything } };
const asStream = { "text/event-stream": { schema: { type: "string" } } };

/** Describes the paths of the gateway. What stands in their bodies is the business of the engines. */
export function gatewayPaths(): Record<string, Json> {
  const posts = DIALECT_PATHS.map((path) => {
    const dialect = dialectOf("POST", path) as Dialect;
    const isStreamed = dialect !== "embeddings";
    const responses = {
      200: { description: "What the engine answers.", content: { ...asJson, ...(isStreamed && asStream) } },
      default: { description: "An error in the envelope of the protocol.", content: asJson },
    };
    const requestBody = { required: true, content: asJson };
    const summary = `Speaks ${PROTOCOLS[dialect]}.`;
    return [path, { post: { operationId: idOf(path), summary, requestBody, responses } }] as const;
  });
  const responses = { 200: { description: "The models of all workers.", content: asJson } };
  const models = { get: { operationId: "listModels", summary: "Lists the models of all workers.", responses } };
  return { ...Object.fromEntries(posts), "/v1/models": models };
}

/** Describes the path of the metrics. */
export function metricsPath(path: string): Record<string, Json> {
  const content = { "text/plain": { schema: { type: "string" } } };
  const responses = { 200: { description: "Metrics in the text format of Prometheus.", content } };
  return { [path]: { get: { operationId: "metrics", summary: "Says what has been counted.", responses } } };
}

const idOf = (path: string) =>
  path.slice("/v1/".length).replace(/\/(\w)/g, (_, letter: string) => letter.toUpperCase());
