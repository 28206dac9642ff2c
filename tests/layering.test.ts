import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

// Which room may import which: the table of docs/architecture.md. Every room may also import itself and errors.ts.
const MAY_IMPORT: Record<string, readonly string[]> = {
  abi: [],
  errors: ["abi"],
  bytes: [],
  clock: [],
  system: ["clock"],
  core: ["abi"],
  selection: ["core", "clock", "system"],
  transport: ["clock"],
  disagg: ["transport", "clock", "system"],
  gateway: ["selection", "core", "bytes", "clock", "system"],
  http: ["gateway", "selection", "core", "bytes", "clock", "system"],
  sim: ["core", "selection", "clock"],
  testing: ["sim", "core", "bytes", "clock", "system"],
  node: ["http", "gateway", "testing", "transport", "sim", "selection", "core", "bytes", "clock", "system"],
  cli: ["node", "http", "gateway", "testing", "sim", "selection", "core", "bytes"],
};

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(folder, file));

const read = (file: string) => readFileSync(join(root, file), "utf8");

/** What a file imports, without types' sake or not: a type of a room is a dependency on it as well. */
function importsOf(file: string): string[] {
  return [...read(file).matchAll(/\bfrom\s+"([^"]+)"|\bimport\s+"([^"]+)"|\bimport\("([^"]+)"\)/g)].map(
    (match) => (match[1] ?? match[2] ?? match[3]) as string,
  );
}

/** What stands in a bundle because a file does: what it imports, and what that imports, but for types and for `import()`. */
function bundledWith(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  const statements = withoutComments(read(file)).matchAll(
    /^(?:im|ex)port (?!type\b)(?:[^;"]*\bfrom )?"(\.[^"]+)\.js"/gm,
  );
  for (const [, target] of statements) bundledWith(`${normalize(join(dirname(file), target as string))}.ts`, known);
  return known;
}

/** The room of a file of src: its folder, or its own name where it stands at the top. */
function roomOf(file: string): string {
  const path = relative("src", file).split("/");
  return path.length > 1 ? (path[0] as string) : (path[0] as string).replace(/\.(ts|js)$/, "");
}

const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");

/** What answers requests: desk.ts, and what only it needs. */
const FOR_REQUESTS = [
  ..."admission admission-entry admission-rate alarm attempt booking call call-body call-list candidates desk".split(
    " ",
  ),
  ..."event-boundary event-data explain health models prediction prepare prompt protocol receipt retry".split(" "),
  ..."sendable session stream tenants token-rates trip upstream usage wait".split(" "),
].map((name) => `src/gateway/${name}.ts`);

describe("the main entry", () => {
  const bundled = bundledWith("src/index.ts");

  test("has what it is a list of, and loads the rest from one place", () => {
    expect(bundled).toContain("src/gateway/router.ts");
    const loading = sources("src").filter((file) =>
      /\bimport\("/.test(withoutComments(read(file)).replace(/typeof import/g, "")),
    );
    expect(loading.filter((file) => bundled.has(file))).toEqual(["src/gateway/load-desk.ts"]);
    expect([...bundledWith("src/gateway/desk.ts")]).toEqual(expect.arrayContaining(FOR_REQUESTS));
  });

  // One such import would bring all of it back into the bundles of those who make no request, and nothing would fail.
  test("imports nothing that is loaded with the first request", () => {
    expect(FOR_REQUESTS.filter((file) => bundled.has(file))).toEqual([]);
    expect([...bundled].filter((file) => file.startsWith("src/gateway/prompt/"))).toEqual([]);
  });
});

describe("the rooms of src", () => {
  const files = sources("src").filter((file) => file !== "src/index.ts");

  test("there are no rooms but those in the table", () => {
    expect([...new Set(files.map(roomOf))].filter((room) => !(room in MAY_IMPORT))).toEqual([]);
  });

  test.each(files)("%s imports only what its room may", (file) => {
    const room = roomOf(file);
    const allowed = new Set([room, "errors", ...(MAY_IMPORT[room] ?? [])]);
    if (["abi", "bytes", "clock", "system"].includes(room)) allowed.delete("errors");
    const targets = importsOf(file)
      .filter((target) => target.startsWith("."))
      .map((target) => normalize(join(dirname(file), target)))
      .filter((target) => target.startsWith("src/"));
    expect(targets.filter((target) => !allowed.has(roomOf(target)))).toEqual([]);
  });

  test.each(files)("%s names WebAssembly, Node and the clock only where it may", (file) => {
    const room = roomOf(file);
    const text = withoutComments(read(file));
    if (room !== "core") expect(text).not.toMatch(/\bWebAssembly\./);
    if (room === "node" || room === "cli") return;
    expect(importsOf(file).filter(isBuiltin)).toEqual([]); // "fs" is Node's, too
    expect(text).not.toMatch(/["'`]node:/);
    expect(text).not.toMatch(/\bprocess\b|\bBuffer\b/);
    if (room === "system") return;
    expect(text).not.toMatch(
      /\bDate\.now\b|\bperformance\b|\bMath\.random\b|(?<!\bclock\.)\bsetTimeout\(|\bsetInterval\(/,
    );
  });

  // Each breaks one runtime alone: a module of another realm fails instanceof, and require() refuses a top-level await.
  test.each(files)("%s asks for no module of this realm, and awaits nothing when it is imported", (file) => {
    const text = withoutComments(read(file));
    expect(text).not.toMatch(/\binstanceof\s+WebAssembly\b/);
    if (file !== "src/cli/main.ts") expect(text).not.toMatch(/^\S.*\bawait\b/m);
  });

  test("nothing of src imports the core's sources", () => {
    expect(files.filter((file) => importsOf(file).some((target) => /(^|\/)assembly\//.test(target)))).toEqual([]);
  });
});

test.each(sources("assembly"))("%s imports the core and src/abi.ts only", (file) => {
  const strangers = importsOf(file)
    .map((target) => normalize(join(dirname(file), target)))
    .filter((target) => !target.startsWith("assembly/") && target !== "src/abi");
  expect(strangers).toEqual([]);
});
