import { OptionError } from "../../errors.js";
import { formatCount } from "../report.js";

/** Where a value was given, as errors name it: `--port`, `KVROUTE_PORT` or `kvroute.yaml: port`. */
export interface Place {
  readonly name: string;
  /** Whether the value may not be shown. */
  readonly isSecret: boolean;
}

/** A kind of values: which there are, and how one is read. */
export interface Kind<T> {
  /** Which values there are, as the documentation has them. */
  readonly range: string;
  /** Turns a text, as flags and variables have them, into what a file would hold; a text that says nothing stays as it is. */
  ofText(text: string): unknown;
  /**
   * Reads what a file holds.
   *
   * @throws {OptionError} `KVROUTE_OPTION` if it is not of the kind
   */
  read(value: unknown, place: Place): T;
}

const SHOWN_LENGTH_MAX = 80;

/** Whole numbers from `min` to `max`, multiples of `step` where there is one. */
export function whole(min: number, max: number, step = 1): Kind<number> {
  const range = `${formatCount(min)} to ${formatCount(max)}${step === 1 ? "" : `, a multiple of ${step}`}`;
  const isOne = (value: unknown): value is number => Number.isInteger(value) && (value as number) % step === 0;
  return {
    range,
    ofText: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
    read(value, place) {
      if (isOne(value) && value >= min && value <= max) return value;
      throw refusal(place, `a whole number from ${min} to ${max}${step === 1 ? "" : `, a multiple of ${step}`}`, value);
    },
  };
}

/** Whole numbers from `min` to `max`, and 0, which turns something off. */
export function zeroOr(min: number, max: number): Kind<number> {
  return {
    range: `0, ${formatCount(min)} to ${formatCount(max)}`,
    ofText: whole(min, max).ofText,
    read(value, place) {
      if (value === 0 || (Number.isInteger(value) && (value as number) >= min && (value as number) <= max))
        return value as number;
      throw refusal(place, `0, or a whole number from ${min} to ${max}`, value);
    },
  };
}

/** True and false; in texts also 1 and 0. */
export const truth: Kind<boolean> = {
  range: "true, false",
  ofText: (text) => (/^(true|1)$/.test(text) ? true : /^(false|0)$/.test(text) ? false : text),
  read(value, place) {
    if (typeof value === "boolean") return value;
    throw refusal(place, "true or false", value);
  },
};

/** One of some words. */
export function oneOf<T extends string>(words: readonly T[]): Kind<T> {
  return {
    range: words.map((word) => `\`${word}\``).join(", "),
    ofText: (text) => text,
    read(value, place) {
      const word = words.find((one) => one === value);
      if (word !== undefined) return word;
      throw refusal(place, `one of ${words.join(", ")}`, value);
    },
  };
}

/** Texts of a form. */
export function text(expected: string, form: RegExp): Kind<string> {
  return {
    range: expected,
    ofText: (given) => given,
    read(value, place) {
      if (typeof value === "string" && form.test(value)) return value;
      throw refusal(place, expected, value);
    },
  };
}

/** Lists of one to `most` values of a kind; in texts between commas. */
export function listOf<T>(kind: Kind<T>, most: number): Kind<readonly T[]> {
  return {
    range: kind.range,
    ofText: (given) => given.split(",").map((one) => kind.ofText(one.trim())),
    read(value, place) {
      if (!Array.isArray(value) || value.length === 0 || value.length > most) {
        const got = Array.isArray(value) ? `one of ${value.length}` : undefined;
        throw refusal(place, `a list of 1 to ${formatCount(most)}`, value, got);
      }
      return value.map((one, index) => kind.read(one, { ...place, name: `${place.name}[${index}]` }));
    },
  };
}

/** Makes the error for a value that is refused: what was expected where, and what came, unless that is a secret. */
export function refusal(place: Place, expected: string, value: unknown, got = describe(value, place)): OptionError {
  return new OptionError(`Expected ${place.name} to be ${expected}, got ${got}.`);
}

function describe(value: unknown, { isSecret }: Place): string {
  if (isSecret) return value === undefined || value === "" ? "nothing" : "another value";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  return JSON.stringify(value.length > SHOWN_LENGTH_MAX ? `${value.slice(0, SHOWN_LENGTH_MAX)}…` : value);
}
