import { expect } from "vitest";
import { leaveRow, type Row } from "../package/runtime-table.js";

const SUM = /(?:^|\n)([^\n]+): (\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/;

/** Cases that the suite has at least: a suite that lost them has not passed. */
const CASES_MIN = 35;

/**
 * Holds what the portable suite printed in a runtime: everything passed, and what the runtime lacks is all that was
 * skipped. Shows the sum, and leaves a row for the README.
 */
export function expectPassed(
  printed: string,
  row: Pick<Row, "runtime" | "core"> & { skips?: number; as?: string },
): void {
  const [, name = "", passed, failed, skipped = "0"] = SUM.exec(printed) ?? [];
  console.log(`${row.runtime}: ${printed.trim()}`);
  expect({ failed, skipped, printed }).toEqual({ failed: "0", skipped: String(row.skips ?? 0), printed });
  expect(Number(passed) + Number(skipped)).toBeGreaterThanOrEqual(CASES_MIN);
  const version = row.as ?? name.replace(/^\S+ /, "");
  const result = `${passed} passed, ${failed} failed${skipped === "0" ? "" : `, ${skipped} skipped`}`;
  leaveRow({ runtime: row.runtime, version, core: row.core, result });
}
