import type { WorkerOptions } from "../../gateway/options.js";
import type { ServeConfig } from "../config/options.js";
import { VERSION } from "../version.js";

/** What a greeting tells of. */
export interface Greeting {
  readonly config: ServeConfig;
  readonly url: string;
  readonly workers: readonly WorkerOptions[];
  readonly isEmbedded: boolean;
  /** A model that a worker serves; `undefined` where none has said so. */
  readonly model: string | undefined;
}

/** Says to people what listens where, what stands behind it, and how to try it. */
export function greet(greeting: Greeting): string {
  const { config, url, workers, isEmbedded } = greeting;
  const width = Math.max(0, ...workers.map(({ id }) => id.length));
  const listed = workers.map(({ id, url }) => `  ${id.padEnd(width)}  ${url}\n`).join("");
  return `kvroute ${VERSION} listens at ${url}, policy ${config.policy}.

${isEmbedded ? EMBEDDED : `${workers.length === 0 ? "No workers yet: POST /workers adds them." : "Workers:"}\n`}${listed}
Try it, and see in x-kvroute-worker where it went:
${curlOf(greeting)}
Metrics: ${url}/metrics   Ready: ${url}/ready   Control: ${controlOf(config)}
One line of JSON a request goes to standard output. SIGTERM or Ctrl-C lets requests end, a second one does not.
`;
}

const EMBEDDED = `No worker is named, so FAKE engines of this process answer: real caches and real waiting, made-up words.
Name yours with --worker http://host:8000.
`;

/** Writes a call that works as it is, but for keys, which are nowhere shown. */
function curlOf({ url, model, config: { apiKeys } }: Greeting): string {
  const messages = [{ role: "user", content: "Tell me of the hanging gardens." }];
  const body = JSON.stringify({ model: model ?? "the-name-of-your-model", messages });
  const key = apiKeys.length === 0 ? "" : ` -H "authorization: Bearer $API_KEY"`;
  return `  curl -si ${url}/v1/chat/completions -H 'content-type: application/json'${key} -d ${quote(body)}
`;
}

function controlOf({ control, controlToken }: ServeConfig): string {
  return control && controlToken !== undefined ? "with the token" : "none";
}

/** Quotes a word for a shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
