import { InvalidArgumentError } from "commander";
import { isPolicyName, POLICY_NAMES, type PolicyName } from "../selection/policy.js";
import { isStressName, STRESS_NAMES, type StressName } from "../sim/stress.js";

/** Reads a whole number from `min` to `max`. */
export function count(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}, got ${show(text)}.`);
  };
}

/** Reads a whole number from `min` to `max`, or the word "infinite". */
export function countOrInfinite(min: number, max: number): (text: string) => number | "infinite" {
  return (text) => {
    if (text === "infinite") return text;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const expected = `Expected a whole number from ${min} to ${max} or "infinite"`;
    throw new InvalidArgumentError(`${expected}, got ${show(text)}.`);
  };
}

/** Reads a decimal number within bounds, `min` itself excluded if `isAbove` says so. */
export function decimal(min: number, max: number, isAbove = false): (text: string) => number {
  return (text) => {
    const value = /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
    if (value <= max && (isAbove ? value > min : value >= min)) return value;
    const range = isAbove ? `above ${min} and at most ${max}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Expected a number ${range}, got ${show(text)}.`);
  };
}

/** Reads names of policies between commas, each of them once. */
export function policies(text: string): PolicyName[] {
  const names = text.split(",").map((name) => name.trim());
  return [...new Set(names)].map((name) => {
    if (isPolicyName(name)) return name;
    throw new InvalidArgumentError(`Expected policies among ${POLICY_NAMES.join(", ")}, got ${show(name)}.`);
  });
}

/** Reads the name of a stress trace. */
export function stress(text: string): StressName {
  if (isStressName(text)) return text;
  throw new InvalidArgumentError(`Expected one of ${STRESS_NAMES.join(", ")}, got ${show(text)}.`);
}

function show(text: string): string {
  return JSON.stringify(text);
}
