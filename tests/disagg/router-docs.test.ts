import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { DECODE_LIMITS, type Limit, PREFILL_LIMITS, ROUTER_LIMITS } from "../../src/disagg/common/limits.js";

const page = readFileSync(new URL("../../docs/disagg.md", import.meta.url), "utf8");

/** The options of a table of the page with their defaults; those without a default are as for a router. */
function documented(title: string): Record<string, number> {
  const section = page.split(`### ${title}\n`)[1]?.split("\n#")[0] ?? "";
  const limits: Record<string, number> = {};
  for (const [, names, fallback] of section.matchAll(/^\| (`[^|]+`) \| ([\d,]*) ?\| .+ \|$/gm)) {
    for (const [, name] of (names as string).matchAll(/`(\w+)`/g)) {
      const shared = ROUTER_LIMITS[name as keyof typeof ROUTER_LIMITS];
      limits[name as string] = fallback ? Number(fallback.replaceAll(",", "")) : (shared[0] as number);
    }
  }
  return limits;
}

test.each<[string, Record<string, Limit>]>([
  ["Of a router", ROUTER_LIMITS],
  ["Of a prefill worker", PREFILL_LIMITS],
  ["Of a decode worker", DECODE_LIMITS],
])("docs/disagg.md lists every limit with its default: %s", (title, table) => {
  expect(documented(title)).toEqual(
    Object.fromEntries(Object.entries(table).map(([name, [fallback]]) => [name, fallback])),
  );
});
