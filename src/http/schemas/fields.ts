import * as z from "zod";
import type { WorkerId } from "../../core/keys.js";
import { DATA_PARALLEL_SIZE_MAX, NAME_LENGTH_MAX, TAINTS_MAX } from "../../selection/catalog/registration.js";

// The kinds of fields. The message of a check says what the field is expected to be; `checked` makes the sentence. What a
// schema cannot tell of itself, its `meta` puts into the OpenAPI document.

const U32_MAX = 0xffff_ffff;
const U64_MAX = 0xffff_ffff_ffff_ffffn;
/** Entries of a map: one a rank. */
const MAP_ENTRIES_MAX = DATA_PARALLEL_SIZE_MAX;
const I64_MIN = -(2n ** 63n);
const I64_MAX = 2n ** 63n - 1n;

/** A whole number that a double holds. */
export const whole = (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  z
    .custom<number>((value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most, {
      error: `a whole number from ${least} to ${most}`,
    })
    .meta({ type: "integer", format: "int64", minimum: least, maximum: most });

export const rank = whole(0, U32_MAX);

const isNumber = (value: unknown) =>
  (typeof value === "number" || typeof value === "bigint") && Number.isFinite(Number(value));

/** A number, of which digits beyond a double do not count. */
export const finite = (phrase = "a finite number", isIn: (value: number) => boolean = () => true) =>
  z
    .custom<number | bigint>((value) => isNumber(value) && isIn(Number(value)), { error: phrase })
    .meta({ type: "number" })
    .transform(Number);

export const flag = z.boolean({ error: "true or false" });

const NAME = `a string of at most ${NAME_LENGTH_MAX} characters`;
const nameSchema = { type: "string", maxLength: NAME_LENGTH_MAX } as const;
const isName = (value: unknown) => typeof value === "string" && value.length <= NAME_LENGTH_MAX;

/** A text that is not endless. */
export const name = z.custom<string>(isName, { error: NAME }).meta(nameSchema);

/** A name that can stand in a path: "." and ".." would lead elsewhere, and half a character cannot be written in UTF-8. */
function isSegment(value: unknown): boolean {
  return typeof value === "string" && value.length <= NAME_LENGTH_MAX && !/^\.{0,2}$|\p{Surrogate}/u.test(value);
}

const SEGMENT = `a string of 1 to ${NAME_LENGTH_MAX} characters other than "." and ".."`;
const segmentSchema = { type: "string", minLength: 1, maxLength: NAME_LENGTH_MAX } as const;

export const selectionId = z.custom<string>(isSegment, { error: SEGMENT }).meta(segmentSchema);

const isU64 = (value: unknown) =>
  typeof value === "bigint" ? value >= 0n && value <= U64_MAX : Number.isSafeInteger(value) && (value as number) >= 0;

const WORKER_ID = `a whole number from 0 to ${U64_MAX}, or ${SEGMENT}`;
const isWorkerId = (value: unknown) => isU64(value) || isSegment(value);
const workerIdSchema = { anyOf: [{ type: "integer", format: "uint64", minimum: 0 }, segmentSchema] };

export const workerId = z.custom<WorkerId>(isWorkerId, { error: WORKER_ID }).meta(workerIdSchema);

const I64 = `a whole number from ${I64_MIN} to ${I64_MAX}`;
const hashSchema = { type: "integer", format: "int64" } as const;
const isI64 = (value: unknown) =>
  typeof value === "bigint" ? value >= I64_MIN && value <= I64_MAX : Number.isSafeInteger(value);

/** Bits of a hash as the wire has them: a signed integer. */
export const hash = z.custom<number | bigint>(isI64, { error: I64 }).meta(hashSchema);

/** What items are: a test, what it expects, and how the OpenAPI document says it. */
interface Kind {
  readonly is: (value: unknown) => boolean;
  readonly phrase: string;
  readonly schema: Record<string, unknown>;
}

const NAMES: Kind = { is: isName, phrase: NAME, schema: nameSchema };
const WORKER_IDS: Kind = { is: isWorkerId, phrase: WORKER_ID, schema: workerIdSchema };
const HASHES: Kind = { is: isI64, phrase: I64, schema: hashSchema };
const NUMBERS: Kind = { is: isNumber, phrase: "a finite number", schema: { type: "number" } };
const TOKENS: Kind = {
  is: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= U32_MAX,
  phrase: `a whole number from 0 to ${U32_MAX}`,
  schema: { type: "integer", format: "int64", minimum: 0, maximum: U32_MAX },
};

/** Where something is wrong, and what is expected there. */
type Fault = { readonly path: PropertyKey[]; readonly phrase: string } | undefined;

// Through a schema, items take thirty times as long, and a body of mistakes a gigabyte: here the first of them ends it.
function scanned(fault: (value: unknown) => Fault, schema: Record<string, unknown>) {
  return z
    .unknown()
    .check(({ value, issues }) => {
      const found = fault(value);
      if (found !== undefined) issues.push({ code: "custom", input: value, path: found.path, message: found.phrase });
    })
    .meta(schema);
}

function list({ is, phrase, schema }: Kind, most = Number.POSITIVE_INFINITY) {
  const limit = most === Number.POSITIVE_INFINITY ? {} : { maxItems: most };
  const fault = (value: unknown): Fault => {
    if (!Array.isArray(value)) return { path: [], phrase: `a list, each ${phrase}` };
    if (value.length > most) return { path: [], phrase: `a list of at most ${most}` };
    const at = value.findIndex((item) => !is(item));
    return at < 0 ? undefined : { path: [at], phrase };
  };
  return scanned(fault, { type: "array", items: schema, ...limit });
}

function map({ is, phrase, schema }: Kind, most: number, what: string) {
  const fault = (value: unknown): Fault => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return { path: [], phrase: "an object" };
    const entries = Object.entries(value);
    if (entries.length > most) return { path: [], phrase: `an object of at most ${most} ${what}` };
    const wrong = entries.find(([, item]) => !is(item));
    return wrong === undefined ? undefined : { path: [wrong[0]], phrase };
  };
  return scanned(fault, { type: "object", additionalProperties: schema, maxProperties: most });
}

export const tokenIds = list(TOKENS).transform((value) => Uint32Array.from(value as number[]));

/** Hashes of blocks, at most so many. */
export const hashes = (most: number) =>
  list(HASHES, most).transform((value) =>
    BigUint64Array.from(value as (number | bigint)[], (bits) => BigInt.asUintN(64, BigInt(bits))),
  );

export const namesUpTo = (most: number) => list(NAMES, most).transform((value) => value as string[]);
export const workerIdsUpTo = (most: number) => list(WORKER_IDS, most).transform((value) => value as WorkerId[]);

/** Names by name. */
export const nameMap = map(NAMES, MAP_ENTRIES_MAX, "entries").transform((value) => value as Record<string, string>);

/** Weights of taints. */
export const taintWeights = map(NUMBERS, TAINTS_MAX, "taints").transform((value) =>
  Object.fromEntries(Object.entries(value as object).map(([taint, weight]) => [taint, Number(weight)])),
);

/** An object, of whose keys those that nobody knows are passed over. */
export const object = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape, { error: "an object" });

/** A field that may be absent; `null` is the same. */
export const optional = <Field extends z.ZodType>(field: Field) =>
  field.nullish().transform((value) => (value ?? undefined) as z.output<Field> | undefined);

/** A field of Dynamo's that would change the answer if this service had what it asks for. Only what asks for nothing passes. */
export const unsupported = (why: string, isNothing: (value: unknown) => boolean = () => false) =>
  z
    .unknown()
    .refine((value) => value === undefined || value === null || isNothing(value), { error: `absent, as ${why}` })
    .optional()
    .meta({ description: `Not supported: ${why}.` });
