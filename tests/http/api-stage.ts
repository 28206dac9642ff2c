import { expect } from "vitest";
import type * as z from "zod";
import { parseJson, printJson } from "../../src/http/json.js";
import { errorAnswer } from "../../src/http/schemas/answers.js";
import { createSelectionApi, type SelectionApi, type SelectionApiOptions } from "../../src/http/selection-api.js";
import type { SelectionServiceOptions } from "../../src/selection/service.js";
import { hashesOf, prompt, SelectionStage } from "../support/selection-stage.js";

export const TOKEN = "open-sesame";

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed without loss: large integers are bigints. */
  // biome-ignore lint/suspicious/noExplicitAny: what is answered is what the tests are about
  readonly body: any;
  readonly text: string;
}

export type Send = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>;

/** Sends requests through a fetch. A body that is a string is sent as it is, others are printed without loss. */
export function sender(fetch: (request: Request) => Promise<Response>, base: string): Send {
  return async (method, path, body, headers = {}) => {
    const raw = body === undefined ? null : typeof body === "string" ? body : printJson(body);
    const type = raw === null ? {} : { "content-type": "application/json" };
    const response = await fetch(
      new Request(base + path, {
        method,
        body: raw,
        headers: { authorization: `Bearer ${TOKEN}`, ...type, ...headers },
      }),
    );
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === "" ? undefined : parseJson(text),
    };
  };
}

/** The API over a service whose clock stands still, without a server. */
export class ApiStage extends SelectionStage {
  readonly api: SelectionApi;
  readonly send: Send;

  constructor(options: Omit<SelectionApiOptions, "service"> = {}, service: SelectionServiceOptions = {}) {
    super(service);
    this.api = createSelectionApi({ controlToken: TOKEN, ...options, service: this.service });
    this.send = sender((request) => this.api.fetch(request), "http://api.test");
  }
}

/** The tokens of a prompt, as a body has them. */
export const tokens = (blocks: number, own = 0) => Array.from(prompt(blocks, own));
/** The hashes of a prompt's blocks, as a body has them. */
export const hashes = (blocks: number, own = 0) =>
  Array.from(hashesOf(prompt(blocks, own)), (hash) => BigInt.asIntN(64, hash));

/** Checks that an answer has the status, and what its schema in the OpenAPI document says and no more. */
export function expectAnswer(reply: Reply, status: number, schema: z.ZodType): Reply["body"] {
  expect({ status: reply.status, body: reply.body }).toMatchObject({ status });
  expect(reply.headers.get("content-type")).toBe("application/json");
  expect(schema.parse(reply.body)).toEqual(reply.body);
  return reply.body;
}

/** Checks that an answer is an error of this status and code. */
export function expectError(reply: Reply, status: number, code: string): void {
  expect({ status: reply.status, code: reply.body.code }).toEqual({ status, code });
  expectAnswer(reply, status, errorAnswer);
}
