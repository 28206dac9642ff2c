import * as z from "zod";
import type { WorkerId } from "../../core/keys.js";
import { NAME_LENGTH_MAX } from "../../selection/catalog/registration.js";

// The kinds of fields. The message of a check says what the field is expected to be; `checked` makes the sentence. What a
// schema cannot tell of itself, its `meta` puts into the OpenAPI document.

const U32_MAX = 0xffff_ffff;
const U64_MAX = 0xffff_ffff_ffff_ffffn;
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

/** A number, of which digits beyond a double do not count. */
export const finite = (phrase = "a finite number", isIn: (value: number) => boolean = () => true) =>
  z
    .custom<number | bigint>(
      (value) =>
        (typeof value === "number" || typeof value === "bigint") &&
        Number.isFinite(Number(value)) &&
        isIn(Number(value)),
      { error: phrase },
    )
    .meta({ type: "number" })
    .transform(Number);

export const flag = z.boolean({ error: "true or false" });

/** A text that is not endless. */
export const name = z
  .custom<string>((value) => typeof value === "string" && value.length <= NAME_LENGTH_MAX, {
    error: `a string of at most ${NAME_LENGTH_MAX} characters`,
  })
  .meta({ type: "string", maxLength: NAME_LENGTH_MAX });

/** A name that can stand in a path: "." and ".." would lead elsewhere, and half a character cannot be written in UTF-8. */
function isSegment(value: unknown): boolean {
  return typeof value === "string" && value.length <= NAME_LENGTH_MAX && !/^\.{0,2}$|\p{Surrogate}/u.test(value);
}

const SEGMENT = `a string of 1 to ${NAME_LENGTH_MAX} characters other than "." and ".."`;
const segmentSchema = { type: "string", minLength: 1, maxLength: NAME_LENGTH_MAX } as const;

export const selectionId = z.custom<string>(isSegment, { error: SEGMENT }).meta(segmentSchema);

const isU64 = (value: unknown) =>
  typeof value === "bigint" ? value >= 0n && value <= U64_MAX : Number.isSafeInteger(value) && (value as number) >= 0;

export const workerId = z
  .custom<WorkerId>((value) => isU64(value) || isSegment(value), {
    error: `a whole number from 0 to ${U64_MAX}, or ${SEGMENT}`,
  })
  .meta({ anyOf: [{ type: "integer", format: "uint64", minimum: 0 }, segmentSchema] });

const isI64 = (value: unknown) =>
  typeof value === "bigint" ? value >= I64_MIN && value <= I64_MAX : Number.isSafeInteger(value);

/** Bits of a hash as the wire has them: a signed integer. */
export const hash = z
  .custom<number | bigint>(isI64, { error: `a whole number from ${I64_MIN} to ${I64_MAX}` })
  .meta({ type: "integer", format: "int64" });

/** Where a list is wrong, and what is expected there. */
type ListFault = { readonly path: readonly number[]; readonly phrase: string } | undefined;

// Item by item through a schema takes thirty times as long, and prompts have a million tokens.
function list(fault: (value: unknown) => ListFault, schema: Record<string, unknown>) {
  return z
    .unknown()
    .check((context) => {
      const found = fault(context.value);
      if (found === undefined) return;
      context.issues.push({ code: "custom", input: context.value, path: [...found.path], message: found.phrase });
    })
    .meta({ type: "array", ...schema });
}

function faultOf(value: unknown, what: string, isItem: (item: unknown) => boolean, most: number): ListFault {
  if (!Array.isArray(value)) return { path: [], phrase: `a list, each ${what}` };
  if (value.length > most) return { path: [], phrase: `a list of at most ${most}` };
  const at = value.findIndex((item) => !isItem(item));
  return at < 0 ? undefined : { path: [at], phrase: what };
}

const isU32 = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= U32_MAX;

export const tokenIds = list(
  (value) => faultOf(value, `a whole number from 0 to ${U32_MAX}`, isU32, Number.POSITIVE_INFINITY),
  { items: { type: "integer", format: "int64", minimum: 0, maximum: U32_MAX } },
).transform((value) => Uint32Array.from(value as number[]));

/** Hashes of blocks, at most so many. */
export const hashes = (most: number) =>
  list((value) => faultOf(value, `a whole number from ${I64_MIN} to ${I64_MAX}`, isI64, most), {
    items: { type: "integer", format: "int64" },
    maxItems: most,
  }).transform((value) =>
    BigUint64Array.from(value as (number | bigint)[], (bits) => BigInt.asUintN(64, BigInt(bits))),
  );

/** A list, with a limit. */
export const listOf = <Item extends z.ZodType>(item: Item, most: number) =>
  z.array(item, { error: "a list" }).max(most, { error: `a list of at most ${most}` });

/** An object, of whose keys those that nobody knows are passed over. */
export const object = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape, { error: "an object" });

/** An object whose keys are names. */
export const mapOf = <Value extends z.ZodType>(value: Value) => z.record(z.string(), value, { error: "an object" });

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
