import { OptionError } from "../../errors.js";
import type { RouteExplanation } from "../../gateway/explain.js";
import { HeaderList } from "../../gateway/header-list.js";
import type { WorkerOptions } from "../../gateway/options.js";
import { createRouter } from "../../gateway/router.js";
import type { Answer, GatewayRequest } from "../../gateway/types.js";
import { createFakeEngine } from "../../testing/fake-engine.js";
import type { ServeConfig } from "../config/options.js";

/** A request as the command line has it. */
export interface Asked {
  /** What errors call it: its file. */
  readonly name: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly bytes: Uint8Array;
}

/**
 * Explains where a request would go in a fleet that nobody else uses, and that has served some others before. Fake engines stand
 * in for the workers: none of them is asked.
 *
 * @throws {KvrouteError} whatever the router says of the request, or `KVROUTE_OPTION` if an earlier one is not served
 */
export async function rehearse(
  config: ServeConfig,
  workers: readonly WorkerOptions[],
  earlier: readonly Asked[],
  asked: Asked,
): Promise<RouteExplanation> {
  const models = [...new Set([...earlier, asked].map(modelOf))].filter((model) => model !== "");
  const fleet = workers.map(({ id, url }) => {
    const served = models.length === 0 ? {} : { models };
    const engine = createFakeEngine({ name: id, outputTokens: 1, speedupRatio: Number.POSITIVE_INFINITY, ...served });
    return { url, engine };
  });
  const { policy, blockBytes, maxBodyBytes } = config;
  fleet.sort((a, b) => b.url.length - a.url.length); // one URL may begin as another one does
  const fetch = async (url: string, init: RequestInit) => {
    const worker = fleet.find((one) => url.startsWith(`${one.url}/`)) as (typeof fleet)[number];
    return worker.engine.fetch(`http://engine${url.slice(worker.url.length)}`, init);
  };
  const router = createRouter({ workers, policy, blockBytes, maxBodyBytes, fetch });
  try {
    for (const one of earlier) await serve(one, await router.answer(requestOf(one)));
    return await router.explain(requestOf(asked));
  } finally {
    for (const { engine } of fleet) engine.dispose();
  }
}

function requestOf({ path, headers, bytes }: Asked): GatewayRequest {
  return { method: "POST", path, query: "", headers: HeaderList.of(headers), bytes };
}

/** Reads an answer to its end: only then has the request been served. */
async function serve({ name }: Asked, { status, body }: Answer): Promise<void> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read()) chunks.push(chunk);
  if (status < 400) return;
  const said = new TextDecoder().decode(Buffer.concat(chunks)).slice(0, 500);
  throw new OptionError(`Expected the request of ${name} to be one that an engine serves, got ${status}: ${said}`);
}

/** Finds the model that a request asks for; what is no JSON asks for none, and the router has a word for it. */
function modelOf({ bytes }: Asked): string {
  try {
    const { model } = JSON.parse(new TextDecoder().decode(bytes)) as { model?: unknown };
    return typeof model === "string" ? model : "";
  } catch {
    return "";
  }
}
