import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { HttpRequestError, KvrouteError } from "../errors.js";
import { errorAnswer } from "../gateway/envelope.js";
import { HeaderList } from "../gateway/header-list.js";
import { loadDesk } from "../gateway/load-desk.js";
import { BODY_BYTES_DEFAULT } from "../gateway/options.js";
import type { Answer } from "../gateway/types.js";
import { checkToken, headersWith } from "../http/token.js";
import { countOption } from "../selection/policies/numbers.js";
import { ApiKeys } from "./gateway/api-keys.js";
import { Cohort } from "./gateway/cohort.js";
import { Connection } from "./gateway/connection.js";
import { checkLength, readBody, type Target, targetOf } from "./gateway/incoming.js";
import { type Outlet, refuse, sendAnswer } from "./gateway/outgoing.js";
import { type Gateway, type GatewayServerOptions, type Refusal, serverOptions } from "./gateway/server-options.js";
import { listen } from "./listen.js";

export type { Gateway, GatewayServerOptions, Refusal };

/** A gateway that listens. */
export interface GatewayServer {
  readonly url: string;
  readonly port: number;
  /** Connections of clients. */
  readonly connections: number;
  /** Requests below `/v1/` that have not been answered. */
  readonly inFlight: number;
  /** Takes no more requests. Resolves when those that there are have been answered; the signal breaks them off. */
  close(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
}

/** Requests that a client may send ahead of their answers. One more, and its connection ends. */
export const AHEAD_MAX = 8;
const MS_MAX = 2 ** 31 - 1;
const BYTES_MAX = 2 ** 31 - 1;
const CONNECTIONS_MAX = 1_048_576;
const CONNECTIONS_DEFAULT = 16_384;
const SEND_TIMEOUT_MS_DEFAULT = 600_000;

/**
 * Starts a server of a gateway.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 * @throws {GatewayError} `KVROUTE_GATEWAY_NOT_LOADED` if what answers the requests of a router does not load
 */
export async function serveGateway(options: GatewayServerOptions): Promise<GatewayServer> {
  const front = new Front(options);
  await loadDesk(); // the gateway is a router, most likely: its first request need not wait for it
  const { port, authority } = await listen(front.server, options.host ?? "127.0.0.1", options.port ?? 0);
  return {
    url: `http://${authority}`,
    port,
    get connections() {
      return front.connections.size;
    },
    get inFlight() {
      return front.inFlight;
    },
    close: ({ signal } = {}) => front.close(signal),
  };
}

/** A request while it is here. */
interface Visit extends Outlet {
  readonly incoming: IncomingMessage;
  /** Whether the client sends its body only when it is told to. */
  awaitsContinue: boolean;
  /** Whether the gateway knows of it. */
  isAsked: boolean;
}

/** The server: between the messages of Node and the requests and answers of a gateway. */
class Front {
  readonly server: Server;
  readonly connections = new Map<Socket, Connection>();
  inFlight = 0;
  readonly #cohort = new Cohort();
  readonly #gateway: Gateway;
  readonly #fallback: ReturnType<typeof getRequestListener> | undefined;
  readonly #apiKeys: ApiKeys | undefined;
  readonly #controlToken: string | undefined;
  readonly #onRefused: GatewayServerOptions["onRefused"];
  readonly #maxBodyBytes: number;
  readonly #sendTimeoutMs: number;
  /** Requests that are at work, those for the fallback as well. */
  #requests = 0;
  #closing: Promise<void> | undefined;
  #onIdle: () => void = nothing;

  constructor(options: GatewayServerOptions) {
    const { gateway, fallback, apiKeys, controlToken } = options;
    checkToken(controlToken);
    this.#gateway = gateway;
    this.#fallback = fallback && getRequestListener(fallback, { overrideGlobalObjects: false });
    this.#apiKeys = apiKeys && new ApiKeys(apiKeys);
    this.#controlToken = controlToken;
    this.#onRefused = options.onRefused;
    this.#maxBodyBytes = countOption("maxBodyBytes", options.maxBodyBytes ?? BODY_BYTES_DEFAULT, 1, BYTES_MAX);
    this.#sendTimeoutMs = countOption("sendTimeoutMs", options.sendTimeoutMs ?? SEND_TIMEOUT_MS_DEFAULT, 1, MS_MAX);
    this.server = createServer(serverOptions(options));
    const { maxConnections = CONNECTIONS_DEFAULT } = options;
    this.server.maxConnections = countOption("maxConnections", maxConnections, 1, CONNECTIONS_MAX);
    this.server.on("error", nothing); // a connection that could not be accepted is the client's loss
    this.server.on("connection", (socket) => this.#connect(socket));
    this.server.on("request", (incoming, response) => this.#take(incoming, response, false));
    this.server.on("checkContinue", (incoming, response) => this.#take(incoming, response, true));
  }

  close(signal: AbortSignal | undefined): Promise<void> {
    const cut = () => {
      for (const { socket } of this.connections.values()) socket.destroy();
    };
    this.#closing ??= this.#closed();
    for (const connection of this.connections.values()) connection.leave();
    signal?.addEventListener("abort", cut);
    if (signal?.aborted) cut();
    return this.#closing.finally(() => signal?.removeEventListener("abort", cut));
  }

  async #closed(): Promise<void> {
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
    if (this.#isBusy) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve; // Node counts connections off before they tell that they are closed
      });
    }
  }

  get #isBusy(): boolean {
    return this.connections.size > 0 || this.#requests > 0;
  }

  #connect(socket: Socket): void {
    this.connections.set(socket, new Connection(socket));
    socket.once("close", () => {
      this.connections.delete(socket);
      if (!this.#isBusy) this.#onIdle();
    });
  }

  #take(incoming: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const connection = this.connections.get(incoming.socket);
    if (connection === undefined || connection.requests >= AHEAD_MAX) return void incoming.socket.destroy();
    incoming.on("error", nothing); // what breaks is seen where it is waited for
    response.on("error", nothing);
    connection.requests++;
    this.#requests++;
    this.#answer({
      incoming,
      response,
      connection,
      awaitsContinue,
      isAsked: false,
      sendTimeoutMs: this.#sendTimeoutMs,
    }).then(
      () => this.#done(connection),
      () => {
        connection.socket.destroy(); // an answer that could not be begun
        this.#done(connection);
      },
    );
  }

  #done(connection: Connection): void {
    connection.requests--;
    this.#requests--;
    if (connection.isLeaving) connection.leave();
    if (!this.#isBusy) this.#onIdle();
  }

  async #answer(visit: Visit): Promise<void> {
    const { incoming, response } = visit;
    let path = "";
    try {
      const target = targetOf(incoming.url as string);
      path = target.path;
      if (this.#fallback === undefined || path.startsWith("/v1/")) return await this.#pass(visit, target);
    } catch (error) {
      if (visit.connection.isGone) return;
      if (response.headersSent) throw error;
      return refuse(visit, this.#refusal(visit, path, error), incoming, !visit.awaitsContinue);
    }
    proceed(visit);
    await this.#fallback(incoming, response);
  }

  /** Answers with an error: by the gateway, so that it knows, unless that is what has failed. */
  #refusal({ incoming, isAsked }: Visit, path: string, error: unknown): Answer {
    const method = incoming.method as string;
    if (!isAsked && error instanceof KvrouteError && this.#gateway.refuse !== undefined) {
      return this.#gateway.refuse({ method, path }, error);
    }
    const answer = errorAnswer(known(error), path);
    this.#tell({ method, path, status: answer.status, error });
    return answer;
  }

  #tell(refusal: Refusal): void {
    try {
      this.#onRefused?.(refusal);
    } catch {
      // whoever is told may fail, and the client is answered all the same
    }
  }

  /** Asks the gateway, once the request is whole, and sends what it answers. */
  async #pass(visit: Visit, { path, query }: Target): Promise<void> {
    const { incoming, connection } = visit;
    this.inFlight++;
    try {
      const headers = HeaderList.ofRaw(incoming.rawHeaders);
      const tenant = this.#apiKeys?.admit(headers);
      if (this.#controlToken !== undefined) {
        for (const name of headersWith(this.#controlToken, headers)) headers.delete(name);
      }
      checkLength(incoming, this.#maxBodyBytes);
      proceed(visit);
      const bytes = await readBody(incoming, this.#maxBodyBytes);
      await this.#cohort.gathered();
      if (connection.isGone) return;
      const { signal } = connection;
      const request = { method: incoming.method as string, path, query, headers, bytes, signal, tenant };
      visit.isAsked = true;
      const answer = await this.#gateway.answer(request);
      await undefined; // all of the cohort have their answers first, and then all write
      await sendAnswer(visit, answer);
    } finally {
      this.inFlight--;
    }
  }
}

/** Tells a client that waits to be told so that it may send its body. */
function proceed(visit: Visit): void {
  if (!visit.awaitsContinue) return;
  visit.awaitsContinue = false;
  visit.response.writeContinue();
}

/** The error that a client is told: of what is no error of this package, nothing. */
function known(error: unknown): KvrouteError {
  if (error instanceof KvrouteError) return error;
  return new HttpRequestError("KVROUTE_HTTP_INTERNAL", "Expected the request to be served, but the server has failed.");
}

function nothing(): void {}
