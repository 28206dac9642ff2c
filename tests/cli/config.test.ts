import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Configured, checkServer, isLoopback, merge, readConfig } from "../../src/cli/config/config.js";
import { CONFIG_BYTES_MAX, parseConfig } from "../../src/cli/config/file.js";
import { addFlags } from "../../src/cli/config/flags.js";
import { flagOf, OPTION_NAMES, OPTIONS, type OptionName, optionOf, variableOf } from "../../src/cli/config/options.js";
import { fromEnvironment, fromFile, fromFlags } from "../../src/cli/config/sources.js";
import { OptionError } from "../../src/errors.js";

/** A value of each option that is not its default: as a text, as a file has it, and as it is read; and one that is wrong. */
const SAMPLES: { readonly [K in OptionName]: { text: string; value: unknown; wrong: unknown[]; other: unknown } } = {
  host: { text: "::1", value: "::1", other: "localhost", wrong: ["", "a b", 5, null] },
  port: { text: "0", value: 0, other: 65_535, wrong: ["80", -1, 65_536, 1.5, true, null, []] },
  workers: {
    text: "http://a:8000,b=http://c:1",
    value: [
      { id: "a:8000", url: "http://a:8000" },
      { id: "b", url: "http://c:1" },
    ],
    other: [{ id: "x", url: "http://x" }],
    wrong: [[], {}, "http://a", ["nonsense"], [{}], [5], [{ url: "http://a", port: 1 }]],
  },
  embedded: { text: "16", value: 16, other: 0, wrong: [17, -1, "2"] },
  policy: { text: "dynamo", value: "dynamo", other: "random", wrong: ["KV", "", 1, ["kv"]] },
  controlToken: {
    text: "s3cret!",
    value: "s3cret!",
    other: "t0ken",
    wrong: ["", "a b", "a,b", 5, "é", "x".repeat(1025)],
  },
  control: { text: "false", value: false, other: true, wrong: ["false", 0, null] },
  apiKeys: { text: "k1,k2", value: ["k1", "k2"], other: ["k3"], wrong: ["k1", [], [""], [5], ["a,b"]] },
  maxInFlight: { text: "1", value: 1, other: 2_147_483_647, wrong: [0, 2_147_483_648, "any"] },
  maxQueued: { text: "0", value: 0, other: 1_000_000, wrong: [-1, 1_000_001] },
  queueTimeoutMs: { text: "1", value: 1, other: 86_400_000, wrong: [0, 86_400_001] },
  retryAttempts: { text: "1", value: 1, other: 10, wrong: [0, 11] },
  breakerFailures: { text: "0", value: 0, other: 1_000_000, wrong: [-1, 1_000_001] },
  breakerOpenMs: { text: "1", value: 1, other: 86_400_000, wrong: [0, 86_400_001] },
  firstByteTimeoutMs: { text: "1", value: 1, other: 2_147_483_647, wrong: [0, 2_147_483_648] },
  stallTimeoutMs: { text: "1", value: 1, other: 2_147_483_647, wrong: [0, 2_147_483_648] },
  healthPath: { text: "/", value: "/", other: "/ping", wrong: ["", "health", "/a b", "/a#b", `/${"a".repeat(1024)}`] },
  healthIntervalMs: { text: "0", value: 0, other: 86_400_000, wrong: [-1, 99, 100.5, 86_400_001] },
  healthTimeoutMs: { text: "1", value: 1, other: 600_000, wrong: [0, 600_001] },
  maxBodyBytes: { text: "1", value: 1, other: 2_147_483_647, wrong: [0, 2_147_483_648] },
  blockBytes: { text: "4", value: 4, other: 16_384, wrong: [0, 6, 16_388] },
  receipts: { text: "0", value: false, other: true, wrong: ["no", 1] },
  forwardAffinityHeaders: { text: "1", value: true, other: false, wrong: ["yes"] },
  logLevel: { text: "silent", value: "silent", other: "debug", wrong: ["INFO", 30] },
  drainTimeoutMs: { text: "0", value: 0, other: 86_400_000, wrong: [-1, 86_400_001] },
};

const FILE = "kvroute.yaml";

/** Reads a command line as the server's. */
function flags(...argv: string[]): Record<string, unknown> {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addFlags(command, OPTION_NAMES);
  return command.parse(argv, { from: "user" }).opts();
}

/** Writes an option as flags. */
function asFlags(name: OptionName, text: string): string[] {
  const flag = flagOf(name);
  if (typeof OPTIONS[name].standard === "boolean") return [/^(true|1)$/.test(text) ? `--${flag}` : `--no-${flag}`];
  return Array.isArray(OPTIONS[name].standard)
    ? text.split(",").flatMap((one) => [`--${flag}`, one])
    : [`--${flag}`, text];
}

const messageOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(OptionError);
    return (error as Error).message;
  }
  throw new Error("Expected a refusal, got none.");
};

const standards = (): Record<string, unknown> =>
  Object.fromEntries(OPTION_NAMES.map((name) => [name, optionOf(name).standard]));

describe("every option", () => {
  test("is within its own range by default, or has no default", () => {
    for (const name of OPTION_NAMES) {
      const { standard, kind } = optionOf(name);
      if (standard === undefined || Array.isArray(standard)) continue;
      expect(kind.read(standard, { name, isSecret: false })).toBe(standard);
    }
  });

  test.each(OPTION_NAMES)("%s is read from flags, the environment and a file alike", (name) => {
    const { text, value } = SAMPLES[name];
    expect(merge([fromFlags(flags(...asFlags(name, text)))]).config).toEqual({ ...standards(), [name]: value });
    const inEnvironment = merge([fromEnvironment({ [variableOf(name)]: text })]);
    expect(inEnvironment.config[name]).toEqual(value);
    expect(inEnvironment.places.get(name)).toBe(variableOf(name));
    expect(merge([fromFile({ [name]: value }, FILE)]).config[name]).toEqual(value);
  });

  test.each(OPTION_NAMES)(
    "%s is refused where it is wrong, with the place and, unless it is secret, the value",
    (name) => {
      for (const wrong of SAMPLES[name].wrong) {
        const message = messageOf(() => merge([fromFile({ [name]: wrong }, FILE)]));
        expect(message).toMatch(new RegExp(`^Expected (the \\w+ of )?${FILE}: ${name}.*, got .*\\.$`));
        const shown = typeof wrong === "number" || (typeof wrong === "string" && wrong.length > 3);
        if (!shown) continue;
        if (OPTIONS[name].isSecret) expect(message).not.toContain(`got ${wrong}`);
        else expect(message).toContain(String(wrong).slice(0, 80));
      }
    },
  );

  test.each(OPTION_NAMES)("%s is no word or number that a text does not say", (name) => {
    for (const text of ["", " ", "0x10", "1e3", "+1", "1.0", "TRUE", "null"]) {
      const read = () => merge([fromEnvironment({ [variableOf(name)]: text })]).config[name];
      let value: unknown;
      try {
        value = read();
      } catch (error) {
        expect((error as Error).message).toContain(variableOf(name));
        continue;
      }
      expect(Array.isArray(value) ? value.join() : value).toBe(text.trim()); // a text, then, which is what it says
    }
  });
});

describe("precedence", () => {
  test("is flags, environment, file, default, for any mixture", () => {
    const subset = fc.subarray(OPTION_NAMES);
    const samples = (names: readonly OptionName[], pick: (name: OptionName) => unknown) =>
      Object.fromEntries(names.map((name) => [name, pick(name)]));
    const property = fc.property(subset, subset, subset, (inFlags, inEnv, inFile) => {
      const argv = inFlags.flatMap((name) => asFlags(name, SAMPLES[name].text));
      const env = Object.fromEntries(inEnv.map((name) => [variableOf(name), SAMPLES[name].text]));
      const file = samples(inFile, (name) => SAMPLES[name].other);
      const { config, places } = merge([fromFlags(flags(...argv)), fromEnvironment(env), fromFile(file, FILE)]);
      const texts = samples([...inFlags, ...inEnv], (name) => SAMPLES[name].value);
      expect(config).toEqual({ ...standards(), ...file, ...texts });
      for (const name of OPTION_NAMES) {
        const place = places.get(name);
        if (inFlags.includes(name)) expect(place).toMatch(/^--/);
        else if (inEnv.includes(name)) expect(place).toBe(variableOf(name));
        else expect(place).toBe(inFile.includes(name) ? `${FILE}: ${name}` : undefined);
      }
    });
    fc.assert(property);
  });

  test("does not hide what is wrong where it is overridden", () => {
    const run = () => merge([fromFlags(flags("--port", "1")), fromEnvironment({ KVROUTE_PORT: "x" })]);
    expect(messageOf(run)).toBe('Expected KVROUTE_PORT to be a whole number from 0 to 65535, got "x".');
  });
});

describe("names", () => {
  test("of a file that are unknown are refused with the nearest", () => {
    expect(messageOf(() => fromFile({ prot: 1 }, FILE))).toBe(
      'Expected kvroute.yaml to have known options, got "prot"; the nearest is "port".',
    );
    expect(messageOf(() => fromFile({ "max-in-flight": 1 }, FILE))).toContain('the nearest is "maxInFlight"');
    expect(messageOf(() => fromFile({ worker: [] }, FILE))).toContain('the nearest is "workers"');
  });

  test("of variables that are unknown are refused with the nearest", () => {
    expect(messageOf(() => fromEnvironment({ KVROUTE_API_KEY: "sk-secret" }))).toBe(
      "Expected variables of kvroute, got KVROUTE_API_KEY; the nearest is KVROUTE_API_KEYS.",
    );
    expect(() =>
      fromEnvironment({ KVROUTE_DEBUG: "1", KVROUTE_CONFIG: "x", PATH: "/bin", kvroute_x: "" }),
    ).not.toThrow();
  });

  test("of variables that Kubernetes sets for a service are none of ours", () => {
    const env = {
      KVROUTE_SERVICE_HOST: "10.0.0.1",
      KVROUTE_SERVICE_PORT: "8001",
      KVROUTE_SERVICE_PORT_HTTP: "8001",
      KVROUTE_PORT: "tcp://10.0.0.1:8001",
      KVROUTE_PORT_8001_TCP: "tcp://10.0.0.1:8001",
      KVROUTE_PORT_8001_TCP_PROTO: "tcp",
      KVROUTE_PORT_8001_TCP_PORT: "8001",
      KVROUTE_PORT_8001_TCP_ADDR: "10.0.0.1",
      KVROUTE_METRICS_SERVICE_HOST: "10.0.0.2",
      KVROUTE_METRICS_PORT: "tcp://10.0.0.2:9",
    };
    expect(fromEnvironment(env)).toEqual(new Map());
  });

  test("of flags, variables and keys differ", () => {
    expect(new Set(OPTION_NAMES.map(flagOf)).size).toBe(OPTION_NAMES.length);
    expect(new Set(OPTION_NAMES.map(variableOf)).size).toBe(OPTION_NAMES.length);
    expect(flagOf("queueTimeoutMs")).toBe("queue-timeout-ms");
    expect(variableOf("forwardAffinityHeaders")).toBe("KVROUTE_FORWARD_AFFINITY_HEADERS");
  });
});

describe("workers", () => {
  const workers = (value: unknown) => merge([fromFile({ workers: value }, FILE)]).config.workers;

  test("are named after their host and port, or as they are told", () => {
    const ids = workers([
      "http://10.0.0.1:8000",
      "https://engines.example/a/v1/",
      "https://engines.example/b",
      "http://[::1]:30000",
      "gpu-1=http://10.0.0.2:8000",
      { url: "http://c" },
      { id: "d", url: "http://c:81", models: ["m"], headers: { "x-key": "k" }, maxInFlight: 3, weight: 2 },
    ]).map(({ id }) => id);
    const paths = ["10.0.0.1:8000", "engines.example/a", "engines.example/b", "[::1]:30000"];
    expect(ids).toEqual([...paths, "gpu-1", "c", "d"]);
  });

  test.each([
    [["http://a:1", "http://a:1/v1"], `Expected the ids of ${FILE}: workers to differ, got "a:1" twice.`],
    [["x=http://a", "x=http://b"], `Expected the ids of ${FILE}: workers to differ, got "x" twice.`],
    [["x=http://a", "y=http://a"], `Expected the urls of ${FILE}: workers to differ, got "http://a" twice.`],
    [[{ url: "http://a", wieght: 2 }], 'got "wieght"; the nearest is "weight".'],
    [[{ url: "http://a", weight: 0 }], `Expected ${FILE}: workers[0].weight to be a number`],
    [[{ url: "http://a", models: [] }], `Expected ${FILE}: workers[0].models to be a list`],
    [[{ url: "http://a", headers: { key: 5 } }], "headers to be an object of texts"],
    [["http://a", "ftp://b"], `Expected ${FILE}: workers[1].url to be an http or https URL`],
  ])("%j are refused", (value, message) => {
    expect(messageOf(() => workers(value))).toContain(message);
  });

  test("are 1,024 at most", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `http://a:${index + 1}`);
    expect(workers(many(1_024))).toHaveLength(1_024);
    expect(messageOf(() => workers(many(1_025)))).toContain("a list of 1 to 1024 workers, got one of 1025");
  });
});

describe("secrets are in no message", () => {
  const SECRET = "S3CRET value";

  test.each([
    { controlToken: SECRET },
    { controlToken: [SECRET] },
    { apiKeys: SECRET },
    { apiKeys: [`${SECRET}`, "ok"] },
    { apiKeys: [{ key: SECRET }] },
    { workers: ["http://user:S3CRET@a"] },
    { workers: ["x=http://user:S3CRET@a b["] },
    { workers: [{ url: "http://user:S3CRET@a" }] },
    { workers: [{ url: "http://a", headers: { "x key": SECRET } }] },
    { workers: [{ url: "http://a", headers: { authorization: `${SECRET}\nx: y` } }] },
    { workers: [{ url: "http://a", headers: SECRET }] },
    { apiKye: SECRET },
  ])("%j", (values) => {
    const message = messageOf(() => merge([fromFile(values as Record<string, unknown>, FILE)]));
    expect(message).not.toContain("S3CRET");
  });

  test.each([
    "controlToken: *S3CRET",
    "controlToken: !S3CRET x",
    "controlToken: S3CRET\ncontrolToken: S3CRET",
    'controlToken: "S3CRET',
    "controlToken: {S3CRET",
    "? [S3CRET]\n: 1",
    "S3CRET",
  ])("of a file that does not parse: %j", (text) => {
    let message: string;
    try {
      message = JSON.stringify(merge([fromFile(parseConfig(text, FILE), FILE)]).config.controlToken === undefined);
    } catch (error) {
      expect(error).toBeInstanceOf(OptionError);
      message = (error as Error).message;
    }
    expect(message).not.toContain("S3CRET");
  });
});

describe("a file", () => {
  let folder: string;
  const path = (name: string) => join(folder, name);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvroute-config-"));
    await writeFile(
      path("good.yaml"),
      "# the router\nport: 9000\nworkers:\n  - http://a:1\n  - { url: http://b:1, weight: 2 }\n",
    );
    await writeFile(path("good.json"), JSON.stringify({ port: 9000, policy: "random" }));
    await writeFile(path("empty.yaml"), "# nothing yet\n");
    await writeFile(path("list.yaml"), "- port: 1\n");
    await writeFile(path("twice.yaml"), "port: 1\nport: 2\n");
    await writeFile(path("latin.yaml"), Buffer.from([0x61, 0xe9]));
    await writeFile(path("full.yaml"), `port: 1\n#${"x".repeat(CONFIG_BYTES_MAX - 9)}`);
    await writeFile(path("long.yaml"), `port: 1\n#${"x".repeat(CONFIG_BYTES_MAX - 8)}`);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const read = (name: string, env = {}) => readConfig({ flags: { config: path(name) }, env });

  test("is YAML or JSON, named by a flag or a variable", async () => {
    expect((await read("good.yaml")).config).toMatchObject({
      port: 9_000,
      workers: [{ id: "a:1" }, { id: "b:1", weight: 2 }],
    });
    expect((await read("good.json", { KVROUTE_CONFIG: "elsewhere" })).config).toMatchObject({
      port: 9_000,
      policy: "random",
    });
    const { config } = await readConfig({ flags: {}, env: { KVROUTE_CONFIG: path("good.json"), KVROUTE_PORT: "1" } });
    expect(config).toMatchObject({ port: 1, policy: "random" });
    expect((await read("empty.yaml")).config).toEqual(standards());
    expect((await read("full.yaml")).config.port).toBe(1);
  });

  test.each([
    ["list.yaml", "to be a mapping of names to values, got a list."],
    ["twice.yaml", "got a fault in line 2, column 1: duplicate key."],
    ["latin.yaml", "to be UTF-8, got other bytes."],
    ["long.yaml", `to have at most ${CONFIG_BYTES_MAX} bytes, got more.`],
  ])("%s is refused", async (name, message) => {
    await expect(read(name)).rejects.toThrow(
      `Expected ${path(name)} ${message.startsWith("got") ? "to be YAML or JSON, " : ""}${message}`,
    );
  });

  test("that is not there is named", async () => {
    await expect(read("none.yaml")).rejects.toMatchObject({ code: "KVROUTE_FILE" });
    await expect(readConfig({ flags: {}, env: { KVROUTE_CONFIG: "" } })).rejects.toThrow("got nothing");
  });

  const result = (text: string): Configured | OptionError => {
    try {
      return merge([fromFile(parseConfig(text, FILE), FILE)]);
    } catch (error) {
      if (error instanceof OptionError) return error;
      throw error;
    }
  };

  test("gives a configuration or an error, whatever JSON it holds", () => {
    const key = fc.oneof(fc.constantFrom(...OPTION_NAMES, "__proto__", "constructor", "toString"), fc.string());
    const worker = fc.dictionary(
      fc.oneof(fc.constantFrom("id", "url", "models", "headers", "maxInFlight", "weight", "__proto__"), fc.string()),
      fc.oneof(fc.jsonValue(), fc.webUrl()),
    );
    const value = fc.oneof(fc.jsonValue(), fc.array(fc.oneof(fc.webUrl(), worker)), fc.nat());
    const check = (text: string) => {
      const outcome = result(text);
      if (outcome instanceof OptionError) expect(outcome.message).toMatch(/^Expected .*\.$/s);
      else expect(Object.keys(outcome.config)).toEqual(OPTION_NAMES);
    };
    fc.assert(fc.property(fc.dictionary(key, value), (values) => check(JSON.stringify(values))));
    fc.assert(fc.property(fc.jsonValue(), (values) => check(JSON.stringify(values))));
  });

  test("gives a configuration or an error, whatever text it is", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "port",
        ": ",
        "\n",
        "- ",
        "&a ",
        "*a",
        "<<: ",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "|",
        ">",
        "!!binary ",
        "? ",
        "%",
        "\t",
        "---\n",
        "...\n",
      ),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => void result(pieces.join(""))));
    for (const deep of ["[".repeat(100_000), `{"a":`.repeat(50_000), "- ".repeat(50_000), "a: &a [*a, *a]\n"]) {
      expect(result(deep)).toBeInstanceOf(OptionError);
    }
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [name, last] of [..."bcdefghi"].map((one, index) => [one, "abcdefgh"[index]])) {
      bomb.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${last}`).join(", ")}]`);
    }
    expect(result(bomb.join("\n"))).toBeInstanceOf(OptionError);
  });
});

describe("a server", () => {
  const check = (values: Record<string, unknown>) => () => checkServer(merge([fromFile(values, FILE)]));

  test.each(["127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "localhost", "LOCALHOST"])(
    "may listen at %s",
    (host) => {
      expect(isLoopback(host)).toBe(true);
      expect(check({ host })).not.toThrow();
    },
  );

  test.each([
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "128.0.0.1",
    "::ffff:10.0.0.1",
    "router.example",
    "localhost.example",
    "127.1",
    "1",
  ])("may not listen at %s without a token, unless there is nothing to be changed", (host) => {
    expect(messageOf(check({ host }))).toBe(
      `Expected --control-token, or --no-control, where others than this machine can connect, got host ${host} (${FILE}: host) and neither.`,
    );
    expect(check({ host, controlToken: "t" })).not.toThrow();
    expect(check({ host, control: false })).not.toThrow();
  });

  test("has workers or embedded engines", () => {
    expect(messageOf(check({ workers: ["http://a"], embedded: 1 }))).toBe(
      `Expected workers or embedded engines, not both, got 1 (${FILE}: workers) and 1 (${FILE}: embedded).`,
    );
    expect(check({ workers: ["http://a"], embedded: 0 })).not.toThrow();
    expect(messageOf(check({ embedded: 0 }))).toContain("got none of them");
    expect(messageOf(check({ embedded: 0, control: false, controlToken: "t" }))).toContain("got none of them");
    expect(check({ embedded: 0, controlToken: "t" })).not.toThrow();
  });
});
