import { readdirSync, readFileSync } from "node:fs";
import { Command } from "commander";
import { expect, test } from "vitest";
import { checkServer, merge } from "../../src/cli/config/config.js";
import { parseConfig } from "../../src/cli/config/file.js";
import { addFlags } from "../../src/cli/config/flags.js";
import { OPTION_NAMES, type OptionName, optionOf } from "../../src/cli/config/options.js";
import { fromFile, fromFlags } from "../../src/cli/config/sources.js";
import { formatCount } from "../../src/cli/report.js";

const docs = new URL("../../docs/", import.meta.url);
const read = (page: string) => readFileSync(new URL(page, docs), "utf8");

const PAGES = ["serve.md", ...readdirSync(new URL("recipes/", docs)).map((name) => `recipes/${name}`)];

function rowOf(name: OptionName): string {
  const { kind, standard, standardText, description } = optionOf(name);
  const value = typeof standard === "number" && name !== "port" ? formatCount(standard) : `\`${standard}\``;
  return `| \`${name}\` | ${kind.range} | ${standardText ?? (standard === undefined ? "none" : value)} | ${description} |`;
}

test("docs/serve.md has the table of the options", () => {
  const table = ["| option | values | default | |", "|---|---|---|---|", ...OPTION_NAMES.map(rowOf)].join("\n");
  expect(/<!-- options -->\n([\s\S]*?)\n?<!-- \/options -->/.exec(read("serve.md"))?.[1]).toBe(table);
});

const blocks = (form: string, page: string) =>
  [...read(page).matchAll(new RegExp(`\`\`\`${form}\\n([\\s\\S]*?)\`\`\``, "g"))].map(([, text]) => text as string);

const files = PAGES.flatMap((page) => blocks("yaml", page).map((text) => [page, text] as const));

test.each(files)("a file of docs/%s is a configuration: %#", (page, text) => {
  expect(text).toMatch(/workers:/);
  expect(() => merge([fromFile(parseConfig(text, page), page)])).not.toThrow();
});

const commands = PAGES.flatMap((page) =>
  blocks("sh", page).flatMap((text) =>
    [...text.matchAll(/kvroute serve (.*)/g)].map(([, argv]) => [page, argv as string]),
  ),
) as [string, string][];

test.each(commands)("a command of docs/%s can be given: kvroute serve %s", (_page, argv) => {
  const command = new Command().exitOverride();
  addFlags(command, OPTION_NAMES);
  const flags = command.parse(argv.split(" "), { from: "user" }).opts();
  expect(() => checkServer(merge([fromFlags(flags)]))).not.toThrow();
});

test("there are files and commands in them", () => {
  expect(files.length).toBeGreaterThan(3);
  expect(commands.length).toBeGreaterThan(2);
});
