import type { WorkerOptions } from "../../gateway/options.js";
import { serveFakeEngine } from "../../node/fake-engine.js";
import { embeddedNames } from "./embedded-names.js";

/** Fake engines of this process. */
export interface Embedded {
  readonly workers: readonly WorkerOptions[];
  close(): Promise<void>;
}

/** Starts fake engines on 127.0.0.1, each at a port of its own. */
export async function startEmbedded(count: number): Promise<Embedded> {
  const names = embeddedNames(count);
  const engines = await Promise.all(names.map((name) => serveFakeEngine({ name })));
  return {
    workers: engines.map(({ url }, index) => ({ id: names[index] as string, url })),
    close: async () => {
      await Promise.all(engines.map((engine) => engine.close()));
    },
  };
}
