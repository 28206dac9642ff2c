import * as z from "zod";
import type { Operation } from "./operation.js";
import { errorAnswer } from "./schemas/answers.js";

type Json = Record<string, unknown>;

/** What a document says of its API besides the operations. */
export interface ApiDescription {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** Paths that are served without being operations, as the document has them. */
  readonly paths?: Readonly<Record<string, Json>> | undefined;
}

const NUMBERS = `Integers of the formats int64 and uint64 are whole numbers of up to 64 bits: a reader that makes doubles of them loses \
digits of hashes and of large worker ids. Hashes are unsigned numbers of 64 bits whose bits are written as a signed one. \
A field that may be absent may be null as well.`;

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  200: "Done.",
  201: "It is there now.",
  400: "A field or the body is wrong; the message names the field.",
  401: "The control token is missing or wrong.",
  404: "There is nothing under the id.",
  409: "The id is booked for something else.",
  413: "The body is too large.",
  415: "The body is not said to be JSON.",
  429: "All workers are busy, or the service is full.",
  503: "No worker may serve the request, or there is no memory for its booking.",
};

/** Makes the OpenAPI 3.1 document of operations, from the schemas that check their requests. */
export function openApiOf(operations: readonly Operation[], about: ApiDescription): Json {
  const { title, version, description } = about;
  const paths: Record<string, Json> = { ...about.paths };
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: operationOf(operation) };
  }
  return {
    openapi: "3.1.0",
    info: { title, version, description: `${description}\n\n${NUMBERS}` },
    paths,
    components: {
      schemas: { Error: schemaOf(errorAnswer, "output") },
      securitySchemes: { control: { type: "http", scheme: "bearer" } },
    },
  };
}

function operationOf(operation: Operation): Json {
  const { id, summary, body, isBodyOptional, isControl, answers } = operation;
  const responses = Object.entries(answers).map(([status, schema]) => [
    status,
    { description: STATUS_TEXTS[Number(status)], content: contentOf(schemaOf(schema, "output")) },
  ]);
  const failures = errorsOf(operation).map((status) => [
    String(status),
    { description: STATUS_TEXTS[status], content: contentOf({ $ref: "#/components/schemas/Error" }) },
  ]);
  return {
    operationId: id,
    summary,
    ...(isControl && { security: [{ control: [] }] }),
    parameters: parametersOf(operation),
    ...(body && { requestBody: { required: !isBodyOptional, content: contentOf(schemaOf(body, "input")) } }),
    responses: Object.fromEntries([...failures, ...responses]),
  };
}

function errorsOf({ body, isControl, errors }: Operation): number[] {
  return [...errors, ...(body === undefined ? [] : [400, 413, 415]), ...(isControl ? [400, 401] : [])];
}

function parametersOf({ path, query }: Operation): Json[] {
  const inPath = /\{(\w+)\}/.exec(path)?.[1];
  const description = 'Digits are a number; a string that looks like one stands in double quotes, as in "7".';
  return [
    ...(inPath === undefined
      ? []
      : [
          {
            name: inPath,
            in: "path",
            required: true,
            ...(inPath === "worker_id" && { description }),
            schema: { type: "string" },
          },
        ]),
    ...query.map((name) => ({ name, in: "query", required: false, schema: { type: "string" } })),
  ];
}

const contentOf = (schema: Json) => ({ "application/json": { schema } });

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
