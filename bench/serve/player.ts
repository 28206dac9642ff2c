// A process of the benchmark: the engines, a contender or the clients, as its first argument says.

import { startEngines } from "./engine.js";
import { ask, type Load, load, type Scene } from "./load.js";
import { PROXIES, type Start } from "./proxies.js";

/** What the benchmark asks of a process. */
export type Question =
  | { readonly verb: "engines"; readonly count: number }
  | { readonly verb: "proxy"; readonly name: string; readonly engines: readonly string[] }
  | { readonly verb: "cpu" }
  | { readonly verb: "ask"; readonly url: string; readonly scene: Scene }
  | { readonly verb: "load"; readonly load: Load };

async function answer(question: Question): Promise<unknown> {
  switch (question.verb) {
    case "engines":
      return startEngines(question.count);
    case "proxy":
      return (PROXIES[question.name] as Start)(question.engines);
    case "cpu": {
      const { user, system } = process.cpuUsage();
      return user + system;
    }
    case "ask":
      return ask(question.url, question.scene);
    case "load":
      return load(question.load);
  }
}

process.on("disconnect", () => process.exit());
process.on("message", (question: Question) => {
  // A failure ends the process, and with it the benchmark: the rejection is not handled on purpose.
  void answer(question).then((reply) => process.send?.(reply));
});
