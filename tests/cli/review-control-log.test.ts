import { pino } from "pino";
import { expect, test } from "vitest";
import { logControl } from "../../src/cli/serve/log-requests.js";

/** Logs a request beside the engines' paths, and gives the lines that came of it. */
async function linesOf(method: string, status: number): Promise<unknown[]> {
  const lines: unknown[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => lines.push(JSON.parse(line)) });
  const request = new Request("http://127.0.0.1/workers", { method });
  await logControl(log, request, async () => new Response(null, { status }));
  return lines;
}

test("who reads without the token is in the log, so that guessing it is not silent", async () => {
  for (const method of ["GET", "HEAD"]) {
    expect(await linesOf(method, 401)).toEqual([{ level: 30, method, path: "/workers", status: 401, msg: "control" }]);
  }
});

test("reading that is allowed says nothing, and changes are in the log", async () => {
  expect(await linesOf("GET", 200)).toEqual([]);
  expect(await linesOf("HEAD", 404)).toEqual([]);
  expect(await linesOf("POST", 201)).toEqual([
    { level: 30, method: "POST", path: "/workers", status: 201, msg: "control" },
  ]);
});
