import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Events of a streamed answer, each in a packet of its own. */
export const EVENTS = 16;

const usage = {
  prompt_tokens: 250,
  completion_tokens: EVENTS,
  total_tokens: 266,
  prompt_tokens_details: { cached_tokens: 0 },
};
const WHOLE = Buffer.from(
  JSON.stringify({
    ...{ id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(EVENTS) }, finish_reason: "stop" }],
    usage,
  }),
);
const chunk = (more: object) =>
  Buffer.from(
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", model: "m", ...more })}\n\n`,
  );
const PARTS = [
  ...Array.from({ length: EVENTS - 1 }, () => chunk({ choices: [{ index: 0, delta: { content: "word " } }] })),
  Buffer.concat([
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage }),
    Buffer.from("data: [DONE]\n\n"),
  ]),
];

/** Starts servers whose answers are fixed: one in JSON, or a stream where the body asks for one. Gives their URLs. */
export async function startEngines(count: number): Promise<readonly string[]> {
  const urls: string[] = [];
  for (let index = 0; index < count; index++) {
    const server = createServer({ keepAliveTimeout: 60_000 }, answer);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }
  return urls;
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  let last: Buffer = Buffer.alloc(0);
  request.on("data", (data: Buffer) => {
    last = data;
  });
  request.on("end", () => {
    if (last.toString("latin1", last.length - 14).endsWith('"stream":true}')) return stream(response);
    response.writeHead(200, ["content-type", "application/json", "content-length", String(WHOLE.length)]).end(WHOLE);
  });
}

function stream(response: ServerResponse): void {
  response.writeHead(200, ["content-type", "text/event-stream"]);
  let next = 0;
  const more = () => {
    if (response.destroyed) return;
    response.write(PARTS[next++]);
    if (next < PARTS.length) setImmediate(more);
    else response.end();
  };
  more();
}
