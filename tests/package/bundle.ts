import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { build, type Plugin } from "vite";

const here = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** The recorded files that travel with the suite: small, and every rule at least once. */
const VECTORS = [
  "block-pool/corner-cases.jsonl",
  "block-pool/duplicate-hashes.jsonl.gz",
  "block-pool/extreme-hashes.jsonl.gz",
  "block-pool/repeated-hash-in-prefix.jsonl.gz",
  "selection-cache/byte-budget.jsonl",
  "selection-cache/replacement-generation.jsonl",
  "selection-cache/ttl-edges.jsonl",
  "selection-cache/utf8-bytes.jsonl",
  "token-hash/sequences.jsonl.gz",
  "token-hash/xxh3.jsonl.gz",
];

/** Of longer files, every so many-th line is taken. */
const LINES_MAX = 600;

function vector(file: string): string {
  const bytes = readFileSync(here(`../conformance/vectors/${file}`));
  const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  if (!file.startsWith("token-hash/")) return text; // lines of a trace depend on those before them
  const lines = text.split("\n").filter((line) => line !== "");
  const every = Math.ceil(lines.length / LINES_MAX);
  return lines.filter((_, index) => index % every === 0).join("\n");
}

const VIRTUAL = "kvroute-vectors";

const embedVectors: Plugin = {
  name: "embed-vectors",
  enforce: "pre",
  resolveId: (source) => {
    if (source === VIRTUAL) return `\0${VIRTUAL}`;
    return source === "node:util" ? here("./portable/deep.ts") : null;
  },
  load: (id) => {
    if (id !== `\0${VIRTUAL}`) return null;
    const entries = VECTORS.map((file) => [file.replace(/\.gz$/, ""), vector(file)]);
    return `export default ${JSON.stringify(Object.fromEntries(entries))};`;
  },
};

/** Bundles the portable suite into one file that imports nothing. */
export async function bundlePortable(file: string): Promise<void> {
  const [, folder = "", name = ""] = /^(.*)\/([^/]+)$/.exec(file) ?? [];
  await build({
    configFile: false,
    logLevel: "error",
    publicDir: false,
    plugins: [embedVectors],
    build: {
      outDir: folder,
      emptyOutDir: false,
      minify: false,
      target: "es2022",
      lib: { entry: here("./portable.ts"), formats: ["es"], fileName: () => name },
    },
  });
}
