import { tokens } from "./api-stage.js";

// What the sentences about fields are made of.

export const PROMPT = { token_ids: tokens(1) };
export const big = 2n ** 64n;

/** A body, and how the sentence about it begins. */
export type Case = readonly [body: Record<string, unknown>, sentence: string];

export const U32 = "a whole number from 0 to 4294967295";
export const SAFE = Number.MAX_SAFE_INTEGER;
export const I64 = "a whole number from -9223372036854775808 to 9223372036854775807";
export const NAME = "a string of at most 1024 characters";
export const SEGMENT = 'a string of 1 to 1024 characters other than "." and ".."';
export const ID = `a whole number from 0 to 18446744073709551615, or ${SEGMENT}`;
export const LONG = "x".repeat(1_025);
export const cut = `the string "${"x".repeat(108)}…`;
