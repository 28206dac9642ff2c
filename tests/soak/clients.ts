import { Agent, request as httpRequest } from "node:http";
import type { Router } from "../../src/gateway/router.js";
import type { Got } from "./reading.js";
import type { Plan } from "./traffic.js";

/** Sends what is planned, tells of each chunk, and gives what came. Rejects where nothing did. */
export type Send = (plan: Plan, signal: AbortSignal, onChunk: () => void) => Promise<Got>;

/** A client over HTTP, with connections that are kept. */
export function httpClient(port: number, connections: number): { send: Send; close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const send: Send = ({ path, body }, signal, onChunk) =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const sent = httpRequest({ host: "127.0.0.1", port, path, method: "POST", headers, agent });
      // Not by the option: a connection that is free again at that very moment would throw what it is aborted with at nobody.
      signal.addEventListener("abort", () => sent.destroy());
      sent.on("error", reject);
      sent.once("response", (incoming) => {
        let text = "";
        const end = () => resolve({ status: incoming.statusCode ?? 0, text, isComplete: incoming.complete });
        incoming.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
          onChunk();
        });
        incoming.once("close", end).on("error", () => {}); // then it is not complete
      });
      sent.end(JSON.stringify(body));
    });
  return { send, close: () => agent.destroy() };
}

/** A client in the same program. */
export function fetchClient(router: Router): Send {
  return async ({ path, body }, signal, onChunk) => {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body), signal };
    const { status, body: stream } = await router.fetch(`http://kvroute${path}`, init);
    const decoder = new TextDecoder();
    let text = "";
    try {
      for await (const chunk of stream ?? []) {
        text += decoder.decode(chunk, { stream: true });
        onChunk();
      }
    } catch {
      return { status, text, isComplete: false };
    }
    return { status, text, isComplete: true };
  };
}
