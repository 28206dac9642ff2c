import { connect, type Socket } from "node:net";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { Answer, AnswerBody, GatewayRequest } from "../../src/gateway/types.js";
import { type GatewayServer, type GatewayServerOptions, serveGateway } from "../../src/node/serve-gateway.js";

export type Asked = GatewayRequest & { readonly tenant?: string | undefined };

const encoder = new TextEncoder();

/** An answer of these texts, one a chunk; `end` comes behind them. */
export function answerOf(
  texts: readonly string[],
  headers: Readonly<Record<string, string>> = {},
  end: () => Promise<undefined> = async () => undefined,
): Answer & { readonly cancelled: () => boolean } {
  const left = [...texts];
  let isCancelled = false;
  const body: AnswerBody = {
    async read() {
      const text = left.shift();
      return text === undefined ? end() : encoder.encode(text);
    },
    async cancel() {
      isCancelled = true;
    },
  };
  return {
    status: 200,
    statusText: "",
    headers: HeaderList.of(Object.entries(headers)),
    body,
    cancelled: () => isCancelled,
  };
}

export const whole = (text: string) => answerOf([text], { "content-length": String(text.length) });

/** A server whose gateway is a function. */
export async function serve(
  answer: (request: Asked) => Promise<Answer> | Answer,
  options: Partial<GatewayServerOptions> = {},
): Promise<GatewayServer> {
  return serveGateway({ gateway: { answer: async (request) => answer(request) }, ...options });
}

/** A client that says what it likes. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  isClosed = false;

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.setEncoding("latin1").on("data", (text: string) => {
      this.received += text;
    });
    this.socket
      .on("error", () => {})
      .on("close", () => {
        this.isClosed = true;
      });
  }

  say(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  /** The statuses of the answers that have come. */
  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  }

  async closed(): Promise<string> {
    if (!this.isClosed) await new Promise((resolve) => this.socket.once("close", resolve));
    return this.received;
  }
}

export const post = (path: string, body: string, headers = "") =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
