import { ServeError } from "../../errors.js";
import { checkServer, readConfig } from "../config/config.js";
import type { ServeConfig } from "../config/options.js";
import { type CliIo, write } from "../io.js";
import { startEmbedded } from "./embedded.js";
import { findModel } from "./find-model.js";
import { greet } from "./greeting.js";
import { createLog, type Log } from "./log.js";
import { RouterServer } from "./server.js";
import { listenToSignals, type Stopping } from "./stopping.js";

/**
 * Reads the configuration, and serves until a signal comes.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if the configuration is wrong; {FileError} if its file cannot be read
 * @throws {ServeError} if it cannot listen, or has broken requests off
 */
export async function runServer(flags: Readonly<Record<string, unknown>>, io: CliIo): Promise<void> {
  const configured = await readConfig({ flags, env: io.env });
  checkServer(configured);
  await serve(configured.config, io);
}

async function serve(config: ServeConfig, io: CliIo): Promise<void> {
  const log = createLog(io.stdout, config.logLevel);
  const stopping = listenToSignals(io);
  const embedded = config.workers.length > 0 ? undefined : await startEmbedded(config.embedded);
  const workers = embedded?.workers ?? config.workers;
  const isEmbedded = embedded !== undefined && workers.length > 0;
  try {
    const server = await RouterServer.start(config, workers, log.logger);
    const { url } = server;
    log.logger.info({ url, workers: workers.map(({ id }) => id), policy: config.policy }, "listening");
    const model = await findModel(workers, stopping.gently);
    await tell(io, greet({ config, url, workers, isEmbedded, model }));
    await stopping.asked();
    await stop({ server, config, io, log, stopping });
  } finally {
    await embedded?.close();
    await log.end();
    stopping.end();
  }
}

interface Serving {
  readonly server: RouterServer;
  readonly config: ServeConfig;
  readonly io: CliIo;
  readonly log: Log;
  readonly stopping: Stopping;
}

/** @throws {ServeError} `KVROUTE_SERVE_CUT_OFF` if requests were broken off */
async function stop({ server, config: { drainTimeoutMs }, io, log: { logger }, stopping }: Serving): Promise<void> {
  const requests = server.inFlight;
  logger.info({ requests }, "draining");
  const left = `: ${requests} ${requests === 1 ? "request" : "requests"} under way may take ${drainTimeoutMs} ms more`;
  await tell(io, `Stopping${requests === 0 ? "" : left}. A second signal stops at once.\n`);
  const cut = await server.stop(AbortSignal.any([stopping.atOnce, AbortSignal.timeout(drainTimeoutMs)]));
  logger.info({ cut }, "stopped");
  if (cut === 0) return;
  const why = stopping.atOnce.aborted ? "a second signal came" : `${drainTimeoutMs} ms had passed (drainTimeoutMs)`;
  const message = `Expected all requests to end before the server, but ${why}, and ${cut} were broken off.`;
  throw new ServeError("KVROUTE_SERVE_CUT_OFF", message);
}

/** Tells people something. Where nobody listens, serving goes on. */
async function tell(io: CliIo, text: string): Promise<void> {
  await write(io.stderr, text).catch(() => undefined);
}
