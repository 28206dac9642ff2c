import { readFileSync } from "node:fs";
import { BlockPool } from "../../src/core/block-pool.js";
import type { Subject } from "./pool-under-test.js";
import { verifyPool } from "./verify.js";

/** What asconfig.json gives the narrow core, so that tests can spend it. */
export const NARROW = {
  /** Slots that can hold a copy: 4 bits, less the sentinel. */
  slots: 15,
  /** Copies that a slot can hold one after the other: 1 bit. */
  lives: 2,
  /** References and pins together. */
  references: 12,
} as const;

let module: WebAssembly.Module | undefined;

/** The real pool on a checked core with hardly any ids and references. */
export const narrowPool: Subject<BlockPool> = {
  name: "BlockPool on the narrow core",
  create: (options) => {
    module ??= new WebAssembly.Module(readFileSync(new URL("../../build/core.narrow.wasm", import.meta.url)));
    return new BlockPool({ ...options, module });
  },
  verify: verifyPool,
};
