import type * as z from "zod";
import type { SelectionService } from "../selection/service.js";
import type { Answer } from "./answer.js";
import type { WorkerRegistry } from "./registry.js";

/** What an operation is given: all of it was checked. */
export interface Call<Body> {
  readonly service: SelectionService;
  /** Who changes workers. */
  readonly workers: WorkerRegistry;
  readonly body: Body;
  /** What stands in the path in the place of `{…}`, decoded; empty where nothing does. */
  readonly segment: string;
  readonly query: URLSearchParams;
}

/** One thing that the API does, as the router and the OpenAPI document read it. */
export interface Operation {
  readonly id: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** With at most one segment in braces. */
  readonly path: string;
  readonly summary: string;
  /** Whether it takes the control token. */
  readonly isControl: boolean;
  readonly body: z.ZodType | undefined;
  /** Whether a body of no bytes is the same as `{}`. */
  readonly isBodyOptional: boolean;
  /** What the query may hold, all of it optional. */
  readonly query: readonly string[];
  /** What is answered, by status. */
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Statuses of errors that it has beside those of every operation. */
  readonly errors: readonly number[];
  readonly run: (call: Call<unknown>) => Answer | Promise<Answer>;
}

type Described = "id" | "method" | "path" | "summary" | "answers";

type OperationOptions<Body extends z.ZodType> = Pick<Operation, Described> &
  Partial<Pick<Operation, "isControl" | "isBodyOptional" | "query" | "errors">> & {
    readonly body?: Body;
    readonly run: (call: Call<z.output<Body>>) => Answer | Promise<Answer>;
  };

/** Describes an operation whose body is as its schema says. */
export function operation<Body extends z.ZodType = z.ZodUndefined>(options: OperationOptions<Body>): Operation {
  return {
    isControl: false,
    isBodyOptional: false,
    query: [],
    errors: [],
    ...options,
    body: options.body,
    run: options.run as Operation["run"], // who calls it has checked the body by the schema
  };
}
