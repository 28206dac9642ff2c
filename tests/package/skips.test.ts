import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { findChromium } from "../browser/chromium.js";
import { PROGRAMS } from "../runtimes/programs.js";
import { fetchBinaries } from "./fetch-binaries.js";
import { NpmError, npm } from "./npm.js";

// What a machine lacks is said in one line and skipped; what is broken fails.

const base = mkdtempSync(join(tmpdir(), "kvroute-skips-"));
const lock = fileURLToPath(new URL("../runtimes/binaries/package-lock.json", import.meta.url));

afterAll(() => rmSync(base, { recursive: true, force: true }));

const platform = "linux-x64";
let stages = 0;

/** A folder for binaries, and what was said. */
function stage() {
  const lines: string[] = [];
  return { folder: join(base, String(stages++)), lines, warn: (line: string) => void lines.push(line) };
}

/** Puts something where programs are expected. */
function lay(folder: string, programs: readonly string[], text = ""): void {
  for (const program of programs) {
    const file = join(folder, "node_modules", program);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** An npm that fails as the machine's does, by what it writes. */
const failing = (stderr: string, code?: string) => () => {
  throw new NpmError("npm ci", base, { stdout: "", stderr, code });
};

describe("other runtimes", () => {
  test("are skipped with one line where npm does not reach a registry: it leaves them out without a word", () => {
    const { folder, lines, warn } = stage();
    const deaf = ["--registry=http://127.0.0.1:9", `--cache=${join(base, "cache")}`, "--fetch-retries=0"];
    const install = (fresh: string) => void npm(fresh, "ci", "--ignore-scripts", "--no-audit", ...deaf);
    const probe = () => void npm(base, "view", "workerd", "version", ...deaf);
    const outcome = fetchBinaries({ folder, platform, install, probe, warn });
    const missing = "no other runtimes here, as npm reaches no registry to fetch them from (ECONNREFUSED).";
    expect({ outcome, lines }).toEqual({ outcome: { missing }, lines: [`SKIPPED: ${missing}`] });
    expect([folder, `${folder}.new`].filter(existsSync)).toEqual([]);
  });

  test("fail where a registry answers and one of them is not there", () => {
    const { folder, lines, warn } = stage();
    const install = (fresh: string) => lay(fresh, Object.values(PROGRAMS).slice(1));
    expect(() => fetchBinaries({ folder, platform, install, probe: () => undefined, warn })).toThrow(
      "install Node 22 of",
    );
    expect(lines).toEqual([]);
  });

  test.each(["ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ENOTCACHED", "E401", "E403", "E503"])(
    "are skipped at %s",
    (code) => {
      const { folder, lines, warn } = stage();
      const outcome = fetchBinaries({
        folder,
        platform,
        install: failing(`npm error code ${code}\nnpm error more\n`),
        warn,
      });
      expect("missing" in outcome && outcome.missing).toContain(`(${code})`);
      expect(lines).toEqual([expect.stringMatching(/^SKIPPED: [^\n]+$/)]);
    },
  );

  test("are skipped on another platform", () => {
    const { folder, lines, warn } = stage();
    expect(fetchBinaries({ folder, platform: "darwin-arm64", install: failing(""), warn })).toHaveProperty("missing");
    expect(lines).toEqual([expect.stringMatching(/^SKIPPED: [^\n]*for linux-x64, not darwin-arm64\.$/)]);
  });

  test("are skipped where npm takes too long", () => {
    const { folder, lines, warn } = stage();
    fetchBinaries({ folder, platform, install: failing("", "ETIMEDOUT"), warn });
    expect(lines).toHaveLength(1);
  });

  test.each([
    ["a lock file that does not fit", failing("npm error code EUSAGE\n")],
    ["bytes that are not those of the lock file", failing("npm error code EINTEGRITY\n")],
    ["a version that is not there", failing("npm error code E404\n")],
    ["a full disk", failing("npm error code ENOSPC\n")],
    ["an npm that says nothing", failing("")],
    [
      "a fault of the test",
      () => {
        throw new TypeError("x is not a function");
      },
    ],
  ])("fail at %s", (_, install) => {
    const { folder, lines, warn } = stage();
    expect(() => fetchBinaries({ folder, platform, install, warn })).toThrow();
    expect(lines).toEqual([]);
  });

  test("are fetched once, and again when the list has changed; what was there stays until the new ones are", () => {
    const { folder, warn } = stage();
    let fetched = 0;
    const install = (fresh: string) => {
      expect(readFileSync(join(fresh, "package-lock.json"))).toEqual(readFileSync(lock));
      lay(fresh, Object.values(PROGRAMS), String(++fetched));
    };
    const laid = () => readFileSync(join(folder, "node_modules", PROGRAMS.Deno), "utf8");
    for (let round = 0; round < 2; round++)
      expect(fetchBinaries({ folder, platform, install, warn })).toEqual({ folder });
    expect(fetched).toBe(1);
    writeFileSync(join(folder, "package-lock.json"), "{}");
    fetchBinaries({ folder, platform, install: failing("npm error code ENOTFOUND\n"), warn });
    expect(laid()).toBe("1");
    expect(fetchBinaries({ folder, platform, install, warn })).toEqual({ folder });
    expect(laid()).toBe("2");
    rmSync(join(folder, "node_modules", PROGRAMS.Bun)); // an installation that was broken off
    fetchBinaries({ folder, platform, install, warn });
    expect(laid()).toBe("3");
  });
});

describe("Chromium", () => {
  test("is where Debian puts it, or where CHROMIUM says", () => {
    expect(findChromium({}, () => true)).toEqual({ program: "/usr/bin/chromium" });
    expect(findChromium({ CHROMIUM: "/opt/chrome" }, () => true)).toEqual({ program: "/opt/chrome" });
    expect(findChromium({ CHROMIUM: "" }, () => true)).toEqual({ program: "/usr/bin/chromium" });
  });

  test("that is not there is said in one line", () => {
    const found = findChromium({ CHROMIUM: "/opt/chrome" }, (file) => file === "/usr/bin/chromium");
    expect("missing" in found && found.missing).toMatch(/^SKIPPED: [^\n]*\/opt\/chrome[^\n]*$/);
  });
});
