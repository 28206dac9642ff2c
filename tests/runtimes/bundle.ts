import { nodeResolve } from "@rollup/plugin-node-resolve";
import { type Plugin, rollup } from "rollup";

/** What rollup says of the sources of zod and its like. An import that leads nowhere is not among it. */
const DEPENDENCIES = new Set(["CIRCULAR_DEPENDENCY", "INVALID_ANNOTATION"]);

/** Bundles a host for a runtime, under the runtime's condition of package.json. Returns the code. */
export async function bundle(input: string, condition: string, plugins: readonly Plugin[] = []): Promise<string> {
  const [code] = (await bundleAll(input, condition, plugins, true)).values();
  return code as string;
}

/** Does as `bundle`, but with what is imported later in files of its own. Returns the code by file, that of the host first. */
export async function bundleAll(
  input: string,
  condition: string,
  plugins: readonly Plugin[] = [],
  inlineDynamicImports = false,
): Promise<ReadonlyMap<string, string>> {
  const bundled = await rollup({
    input,
    external: /core\.wasm$/,
    plugins: [...plugins, nodeResolve({ exportConditions: [condition] })],
    makeAbsoluteExternalsRelative: false,
    onwarn: (warning) => {
      if (DEPENDENCIES.has(warning.code ?? "")) return;
      throw new Error(`rollup warns of ${input}: ${warning.message}`);
    },
  });
  const { output } = await bundled.generate({ format: "es", inlineDynamicImports, chunkFileNames: "[name].js" });
  await bundled.close();
  return new Map(output.flatMap((part) => (part.type === "chunk" ? [[part.fileName, part.code]] : [])));
}
