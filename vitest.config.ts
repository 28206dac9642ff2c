import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { embedCore } from "./scripts/embed-core.mjs";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

// The same tests run on the core that ships and on the checked one, whose `verify` walks everything it keeps.
const project = (name: string, core: string, include: string[], exclude: string[] = [], setupFiles: string[] = []) => ({
  plugins: [embedCore(path(core))],
  resolve: { alias: { "#core": path("./src/core/module.inline.ts") } },
  test: { name, include, exclude: ["**/*.bench.ts", ...exclude], setupFiles, testTimeout: 60_000 },
});

const both = ["tests/model/**/*.test.ts", "tests/conformance/**/*.test.ts", "tests/unit/core/**/*.test.ts"];

// What the packed package does in other runtimes: minutes, so not in the quick loop.
const packed = ["tests/runtimes/**/*.test.ts", "tests/browser/**/*.test.ts", "tests/package/packed/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      project("shipped", "./build/core.wasm", ["tests/**/*.test.ts"], packed, ["tests/support/load-desk.ts"]),
      project("checked", "./build/core.checked.wasm", both),
      {
        test: {
          name: "packed",
          include: packed,
          globalSetup: "tests/package/stage.ts",
          testTimeout: 150_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
