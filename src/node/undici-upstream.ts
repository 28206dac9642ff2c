import { Pool } from "undici";
import { DisposedError, UpstreamError } from "../errors.js";
import type { HeaderList } from "../gateway/header-list.js";
import { checkHeader } from "../gateway/header-text.js";
import { checkBegin } from "../gateway/sendable.js";
import { OF_THE_CONNECTION, type Upstream, type UpstreamRequest, WRITTEN_BY_CLIENT } from "../gateway/upstream.js";
import { countOption } from "../selection/policies/numbers.js";
import { Cohort } from "./gateway/cohort.js";
import { Exchange } from "./gateway/exchange.js";

export interface UndiciUpstreamOptions {
  /** Connections to one worker, and so requests that it has at a time. One more is refused. 1 to 65,536, default 4,096. */
  readonly maxConnections?: number | undefined;
  /** Workers whose connections are kept; beyond, those go that were used longest ago. 1 to 65,536, default 1,024. */
  readonly maxWorkers?: number | undefined;
  /** How long an idle connection is kept where the worker does not say how long. 1 to 2^31 - 1, default 4,000. */
  readonly keepAliveMs?: number | undefined;
  /** How long connecting may take. 1 to 2^31 - 1, default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Bytes of the headers of an answer. 1 to 2^31 - 1, default 65,536. */
  readonly maxHeaderBytes?: number | undefined;
}

/** An upstream with connections of its own. */
export interface UndiciUpstream extends Upstream {
  /** Ends all connections, and the requests on them. */
  close(): Promise<void>;
}

export const CONNECTIONS_DEFAULT = 4_096;
export const WORKERS_DEFAULT = 1_024;
const COUNT_MAX = 65_536;
const MS_MAX = 2 ** 31 - 1;
/** Shorter than the 5 s after which the servers of engines hang up: none should do so just when a request leaves. */
export const KEEP_ALIVE_MS_DEFAULT = 4_000;
const CONNECT_TIMEOUT_MS_DEFAULT = 10_000;
const HEADER_BYTES_DEFAULT = 65_536;

const LEFT_BEHIND = new Set([...OF_THE_CONNECTION, ...WRITTEN_BY_CLIENT]);

/** The connections to one worker. */
interface Origin {
  readonly pool: Pool;
  inFlight: number;
  /** When it was used last, in requests. */
  usedAt: number;
}

/**
 * Reaches workers by connections of its own, with less work for each request than `fetch`. Workers are asked for plain bodies;
 * what one encodes all the same passes as it is, with the header that says so. Redirects are answers.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function undiciUpstream(options: UndiciUpstreamOptions = {}): UndiciUpstream {
  return new Connections(options);
}

class Connections implements UndiciUpstream {
  readonly #maxConnections: number;
  readonly #maxWorkers: number;
  readonly #settings: Pool.Options;
  readonly #cohort = new Cohort();
  readonly #origins = new Map<string, Origin>();
  #requests = 0;
  #isClosed = false;

  constructor(options: UndiciUpstreamOptions) {
    const { maxConnections = CONNECTIONS_DEFAULT, maxWorkers = WORKERS_DEFAULT } = options;
    const { keepAliveMs = KEEP_ALIVE_MS_DEFAULT, connectTimeoutMs = CONNECT_TIMEOUT_MS_DEFAULT } = options;
    this.#maxConnections = countOption("maxConnections", maxConnections, 1, COUNT_MAX);
    this.#maxWorkers = countOption("maxWorkers", maxWorkers, 1, COUNT_MAX);
    this.#settings = {
      connections: this.#maxConnections,
      pipelining: 1,
      keepAliveTimeout: countOption("keepAliveMs", keepAliveMs, 1, MS_MAX),
      connectTimeout: countOption("connectTimeoutMs", connectTimeoutMs, 1, MS_MAX),
      maxHeaderSize: countOption("maxHeaderBytes", options.maxHeaderBytes ?? HEADER_BYTES_DEFAULT, 1, MS_MAX),
      headersTimeout: 0, // whoever sends has limits of their own, and a clock
      bodyTimeout: 0,
    };
  }

  async send({ method, url, headers, bytes, signal }: UpstreamRequest) {
    await undefined; // all of the cohort come as far as this first, and then all send
    signal.throwIfAborted();
    checkBegin(method, url, bytes);
    const sent = sentHeaders(headers);
    const begin = url.indexOf("/", url.indexOf("//") + 2);
    const [origin, path] = begin < 0 ? [url, "/"] : [url.slice(0, begin), url.slice(begin)];
    const connections = this.#originAt(origin);
    if (connections.inFlight >= this.#maxConnections) throw busy(this.#maxConnections);
    connections.inFlight++;
    const onDone = () => {
      connections.inFlight--;
    };
    const exchange = new Exchange({ hasBody: method !== "HEAD", signal, cohort: this.#cohort, onDone });
    connections.pool.dispatch({ method: method as "POST", path, headers: sent, body: bytes ?? null }, exchange);
    return exchange.answer;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const pools = [...this.#origins.values()].map(({ pool }) => pool.destroy());
    this.#origins.clear();
    await Promise.all(pools);
  }

  #originAt(url: string): Origin {
    if (this.#isClosed) throw new DisposedError("upstream");
    let origin = this.#origins.get(url);
    if (origin === undefined) {
      this.#makeRoom();
      origin = { pool: new Pool(url, this.#settings), inFlight: 0, usedAt: 0 };
      this.#origins.set(url, origin);
    }
    origin.usedAt = ++this.#requests;
    return origin;
  }

  #makeRoom(): void {
    if (this.#origins.size < this.#maxWorkers) return;
    const idle = [...this.#origins].filter(([, { inFlight }]) => inFlight === 0);
    const [first] = idle.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (first === undefined) {
      const message = `Expected at most ${this.#maxWorkers} workers with requests under way (maxWorkers), got one more.`;
      throw new UpstreamError("KVROUTE_UPSTREAM_UNREACHABLE", message);
    }
    const [url, { pool }] = first;
    this.#origins.delete(url);
    pool.destroy().catch(() => {}); // nobody waits for it
  }
}

/** Gives the headers of a request as they are sent: those of the caller's connection stay behind. */
function sentHeaders(headers: HeaderList): string[] {
  const named = headers
    .get("connection")
    ?.toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const given = headers.toRaw();
  const sent = ["accept-encoding", "identity"];
  for (let at = 0; at < given.length; at += 2) {
    const name = given[at] as string;
    if (LEFT_BEHIND.has(name) || named?.includes(name) === true) continue;
    const value = given[at + 1] as string;
    checkHeader(name, value);
    sent.push(name, value);
  }
  return sent;
}

function busy(most: number): UpstreamError {
  const message = `Expected at most ${most} requests at a time at one worker (maxConnections), got one more.`;
  return new UpstreamError("KVROUTE_UPSTREAM_UNREACHABLE", message);
}
