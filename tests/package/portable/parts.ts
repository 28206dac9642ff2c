import type * as disagg from "../../../src/disagg/index.js";
import type * as http from "../../../src/http/index.js";
import type * as kvroute from "../../../src/index.js";
import type * as events from "../../../src/selection/events.js";
import type * as testing from "../../../src/testing/index.js";
import { same } from "../../support/agree.js";

/** What a host has imported by the package's name. */
export interface Modules {
  readonly kvroute: typeof kvroute;
  readonly disagg: typeof disagg;
  readonly testing: typeof testing;
  /** These two not where a page imports the one self-contained file: they need packages. */
  readonly http?: typeof http | undefined;
  readonly events?: typeof events | undefined;
}

export interface Case {
  readonly name: string;
  readonly run: (modules: Modules) => void | Promise<void>;
}

/** A case needs what the runtime does not have. */
export class Skip extends Error {}

/** Checks that a call throws an error with a code. Returns it. */
export function throwsCode(code: string, call: () => unknown): Error & { readonly code: string } {
  try {
    call();
  } catch (error) {
    same("code", code, (error as { code?: unknown }).code);
    return error as Error & { readonly code: string };
  }
  throw new Error(`Expected ${code}, and nothing was thrown.`);
}

/** The lines of a recorded file, which the bundle carries, without its header. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(1);
}
