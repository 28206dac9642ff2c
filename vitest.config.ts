import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { embedCore } from "./scripts/embed-core.mjs";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

// The same tests run on the core that ships and on the checked one, whose `verify` walks everything it keeps.
const project = (name: string, core: string, include: string[]) => ({
  plugins: [embedCore(path(core))],
  resolve: { alias: { "#core": path("./src/core/module.inline.ts") } },
  test: { name, include, exclude: ["**/*.bench.ts"], testTimeout: 60_000 },
});

const both = ["tests/model/**/*.test.ts", "tests/conformance/**/*.test.ts", "tests/unit/core/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      project("shipped", "./build/core.wasm", ["tests/**/*.test.ts"]),
      project("checked", "./build/core.checked.wasm", both),
    ],
  },
});
