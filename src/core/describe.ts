/** Says in an error what a caller passed: its type, and its value where that is short. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "object") return "an object";
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  return `the ${typeof value} ${typeof value === "string" ? JSON.stringify(value) : value}`;
}
