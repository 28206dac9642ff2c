import { checkU32 } from "../checks.js";
import { type Limits, limitsOf, MOST } from "../limits.js";
import { brokenError, refusedError } from "../reasons.js";
import { type ConnectedTransport, WireEnd } from "./end.js";
import { decodeFrame, encodeFrame, type Frame, type FrameBytes, frameError } from "./frames.js";
import type { Pipe } from "./pipe.js";

export interface ConnectOptions {
  /** The rank to be connected under. */
  readonly rank: number;
  /** The largest envelope that may come, 64 MiB by default. A hub that allows larger ones is refused. */
  readonly maxEnvelopeBytes?: number | undefined;
  /** The widest window that may be asked of this end, 64 MiB by default. A hub that allows a wider one is refused. */
  readonly windowBytes?: number | undefined;
  /** The most envelopes that a window may have, 256 by default. A hub that allows more is refused. */
  readonly windowEnvelopes?: number | undefined;
  /** Sends that wait for one rank, 16,384 by default. */
  readonly maxWaiting?: number | undefined;
  /** Gives the connection up while it is not made. */
  readonly signal?: AbortSignal | undefined;
}

type Welcome = Extract<Frame, { kind: "welcome" }>;

/**
 * Greets the hub at the other end of a pipe.
 *
 * @throws {TransportError} `KVROUTE_TRANSPORT_REFUSED` if the hub refuses or allows more than the options do,
 *   `KVROUTE_TRANSPORT_BROKEN` if the pipe closes, `KVROUTE_TRANSPORT_FRAME` if what answers is no hub; whatever `signal`
 *   was aborted with
 */
export async function connect(pipe: Pipe, options: ConnectOptions): Promise<ConnectedTransport> {
  const { rank, signal } = options;
  const own = checkOptions(options);
  if (signal?.aborted) {
    void pipe.close();
    throw signal.reason;
  }
  return new Promise((resolve, reject) => {
    let end: WireEnd | null = null;
    const settle = () => signal?.removeEventListener("abort", giveUp);
    const fail = (error: unknown) => {
      settle();
      void pipe.close();
      reject(error);
    };
    const giveUp = () => fail(signal?.reason);
    const greeted = (bytes: FrameBytes) => {
      try {
        const welcome = welcomeOf(decodeFrame(bytes));
        end = new WireEnd(rank, pipe, agree(own, welcome), welcome.peers);
      } catch (error) {
        return fail(error);
      }
      settle();
      resolve(end);
    };
    pipe.listen({
      onFrame: (bytes) => (end === null ? greeted(bytes) : end.onFrame(bytes)),
      onClose: (reason, cause) => (end === null ? fail(brokenError(rank, reason, cause)) : end.onClose(reason, cause)),
    });
    signal?.addEventListener("abort", giveUp);
    pipe.post(encodeFrame({ kind: "hello", rank }));
  });
}

/** Checks options before anything is opened for them. */
export function checkOptions(options: ConnectOptions): Limits {
  checkU32(options.rank, "rank");
  return limitsOf(options);
}

function welcomeOf(frame: Frame): Welcome {
  if (frame.kind === "refused") throw refusedError(`Expected to be welcomed by the hub, but it said: ${frame.reason}`);
  if (frame.kind === "welcome") return frame;
  throw frameError(`Expected a welcome frame, got a ${frame.kind} frame`);
}

/** Takes the limits of the hub, where they are within one's own. */
function agree(own: Limits, welcome: Welcome): Limits {
  for (const name of ["windowEnvelopes", "windowBytes", "maxEnvelopeBytes"] as const) {
    if (welcome[name] >= 1 && welcome[name] <= own[name]) continue;
    throw refusedError(`Expected a hub whose ${name} is from 1 to ${own[name]}, got one with ${welcome[name]}.`);
  }
  const { windowEnvelopes, windowBytes, maxEnvelopeBytes } = welcome;
  return { windowEnvelopes, windowBytes, maxEnvelopeBytes, maxWaiting: own.maxWaiting, maxRanks: MOST.maxRanks };
}
