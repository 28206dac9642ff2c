import type * as z from "zod";
import { HttpRequestError } from "../errors.js";
import { pathText, shown } from "./text.js";

/**
 * Checks what came in a request.
 *
 * @param schema the message of each of its checks says what the field is expected to be
 * @throws {HttpRequestError} `KVROUTE_HTTP_FIELD` that names the first field that is wrong
 */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const { path, message } = error.issues[0] as z.core.$ZodIssue; // who has failed has an issue
  const got = valueAt(value, path);
  const ending = got === undefined ? "but it is missing" : `got ${shown(got)}`;
  throw new HttpRequestError("KVROUTE_HTTP_FIELD", `Expected ${pathText(path)} to be ${message}, ${ending}.`);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) at = Object(at)[key];
  return at;
}
