import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Every file that a map of conditions leads to. */
export function targetsOf(entry: unknown): string[] {
  if (typeof entry === "string") return [normalize(entry)];
  return Object.values(entry as object).flatMap(targetsOf);
}

/** The files of a folder, at any depth. */
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));

/** What a file of JavaScript or of types imports. */
export function importsOf(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const found = code.matchAll(
    /^(?:import|export)\b[^"'`;]*\bfrom\s*["']([^"']+)["']|^import\s*["']([^"']+)["']|\bimport\(["']([^"']+)["']\)/gm,
  );
  return Array.from(found, ([, named, bare, called]) => named ?? bare ?? called ?? "");
}

/** Follows the imports of files of a package. Returns the files they lead to, and the packages. */
export function reachable(folder: string, entries: readonly string[]): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file)) continue;
    files.add(file);
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    for (const target of importsOf(readFileSync(join(folder, file), "utf8"))) {
      if (target.startsWith(".")) open.push(resolveIn(file, target));
      else packages.add(target);
    }
  }
  return { files, packages };
}

function resolveIn(file: string, target: string): string {
  const path = join(dirname(file), target.replace(/\?.*$/, ""));
  return file.endsWith(".d.ts") ? path.replace(/\.js$/, ".d.ts") : path;
}
