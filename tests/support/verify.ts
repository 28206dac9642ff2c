import { type BlockPool, coreOf } from "../../src/core/block-pool.js";
import type { CheckedExports, CoreExports } from "../../src/core/exports.js";

function isChecked(exports: CoreExports): exports is CheckedExports {
  return "verify" in exports;
}

/** Tells whether the pool runs on the checked core, which can verify itself and refuse growth. */
export function isCheckedPool(pool: BlockPool): boolean {
  return isChecked(coreOf(pool).exports);
}

/** Checks every inner law of the core by walking it; does nothing on the shipped core. */
export function verifyPool(pool: BlockPool): void {
  const core = coreOf(pool);
  if (!isChecked(core.exports)) return;
  try {
    core.exports.verify();
  } catch (trap) {
    throw core.panic(trap);
  }
}

/** Makes the runtime refuse the k-th memory growth from now on, k = 1 being the next one; does nothing on the shipped core. */
export function failGrowth(pool: BlockPool, k: number): void {
  const { exports } = coreOf(pool);
  if (isChecked(exports)) exports.refuseGrowth(k);
}
