import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../", import.meta.url);
const docs = readdirSync(new URL("docs/", root), { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`);

test.each(["README.md", "CHANGELOG.md", ...docs.filter((name) => name.endsWith(".md"))])(
  "the links of %s lead to files that are there",
  (page) => {
    const text = readFileSync(new URL(page, root), "utf8");
    const links = Array.from(text.matchAll(/\]\(([^)#\s]+)/g), ([, link]) => link as string);
    const files = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(files.filter((link) => !existsSync(new URL(link, new URL(page, root))))).toEqual([]);
  },
);
