/** The protocols whose prompts and answers the router understands. */
export type Dialect = "chat" | "completions" | "responses" | "messages" | "embeddings";

const DIALECTS: Readonly<Record<string, Dialect>> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completions",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
  "/v1/embeddings": "embeddings",
};

/** The paths that requests in these protocols are sent to. */
export const DIALECT_PATHS: readonly string[] = /* @__PURE__ */ Object.keys(DIALECTS);

/** Tells which protocol a request speaks, `undefined` for one that is sent by load alone. */
export function dialectOf(method: string, path: string): Dialect | undefined {
  return method === "POST" && Object.hasOwn(DIALECTS, path) ? DIALECTS[path] : undefined;
}
