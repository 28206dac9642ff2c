import type { IncomingMessage, ServerResponse } from "node:http";
import type { Answer, AnswerBody } from "../../gateway/types.js";
import type { Connection } from "./connection.js";

/** How long, and for how many bytes, a client may go on with a body that is refused: one that is cut off reads no answer. */
export const LINGER_MS = 2_000;
export const LINGER_BYTES = 67_108_864;

/** What Node lets stand behind the status. */
const REASON = /^[\t\x20-\x7e\x80-\xff]+$/;

/** Where an answer goes. */
export interface Outlet {
  readonly response: ServerResponse;
  readonly connection: Connection;
  /** How long a client may read nothing of what is there for it. */
  readonly sendTimeoutMs: number;
}

/**
 * Writes an answer as fast as the client reads it. Where its body breaks off, so does the connection, behind what was sent;
 * where the client has gone, the body is cancelled.
 *
 * @throws what Node says of a status or headers that cannot be sent
 */
export async function sendAnswer(outlet: Outlet, { status, statusText, headers, body }: Answer): Promise<void> {
  const { response, connection, sendTimeoutMs } = outlet;
  if (connection.isGone) return cancel(body);
  if (connection.isLeaving) response.shouldKeepAlive = false;
  try {
    response.writeHead(status, REASON.test(statusText) ? statusText : undefined, headers.toRaw());
  } catch (error) {
    cancel(body);
    throw error;
  }
  try {
    if (body !== undefined) await pass(outlet, body, Number(headers.get("content-length") ?? -1));
    if (!response.writableEnded) end(outlet);
  } catch {
    connection.socket.setTimeout(sendTimeoutMs);
    connection.socket.destroySoon(); // without an end: it would look like that of a whole answer
  }
}

/**
 * Answers a request that goes nowhere. Where its body is still coming, the client can read why while it sends, and then the
 * connection ends.
 */
export async function refuse(
  outlet: Outlet,
  answer: Answer,
  incoming: IncomingMessage,
  isComing: boolean,
): Promise<void> {
  const { response, connection } = outlet;
  incoming.resume();
  await new Promise((resolve) => setImmediate(resolve)); // what came with the headers has been read then
  if (connection.isGone) return;
  if (!incoming.complete || connection.isLeaving) response.shouldKeepAlive = false;
  response.statusMessage = ""; // of an answer that could not be sent
  response.writeHead(answer.status, answer.headers.toRaw());
  response.write((await answer.body?.read()) ?? "");
  if (isComing && !incoming.complete) await rest(incoming);
  end(outlet);
}

async function pass(outlet: Outlet, body: AnswerBody, length: number): Promise<void> {
  const { response, connection } = outlet;
  let left = length;
  // Headers wait for the first bytes, to leave in one packet with them, unless those take their time.
  const flush = length < 0 ? setImmediate(() => response.flushHeaders()) : undefined;
  try {
    for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) {
      if (connection.isGone) return cancel(body);
      left -= chunk.length;
      if (length >= 0 && left < 0) {
        cancel(body);
        throw new RangeError("Expected a body as long as its headers say, got a longer one.");
      }
      if (left === 0) end(outlet, chunk);
      else if (!response.write(chunk)) await drained(outlet);
    }
  } finally {
    clearImmediate(flush);
  }
  if (left > 0) throw new RangeError("Expected a body as long as its headers say, got a shorter one.");
}

function end({ response, connection, sendTimeoutMs }: Outlet, last?: Uint8Array): void {
  response.end(last);
  // Until the last of it has gone; then the server has times of its own.
  if (response.writableLength > 0) connection.socket.setTimeout(sendTimeoutMs);
}

/** Waits until the client has read, or has gone. */
function drained({ response, connection, sendTimeoutMs }: Outlet): Promise<void> {
  const { socket } = connection;
  socket.setTimeout(sendTimeoutMs);
  return new Promise((resolve) => {
    const goOn = () => {
      response.off("drain", goOn);
      connection.waiting.delete(goOn);
      socket.setTimeout(0);
      resolve();
    };
    response.on("drain", goOn);
    connection.waiting.add(goOn);
  });
}

/** Waits until what is left of a request has passed. */
function rest(incoming: IncomingMessage): Promise<void> {
  let bytes = 0;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LINGER_MS);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) done();
    });
    for (const event of ["end", "error", "close"]) incoming.once(event, done);
  });
}

function cancel(body: AnswerBody | undefined): void {
  body?.cancel(new Error("The client has gone.")).catch(() => {}); // nobody is left to tell
}
