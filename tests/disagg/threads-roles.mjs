import { DecodeWorker, PrefillWorker } from "kvroute/disagg";
import { decodeStep, isHeld, prefill } from "./threads-model.mjs";

const ended = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Makes a worker of the built package. It takes a turn of the event loop for a prompt, and for every token. */
export function makeWorker(role, transport) {
  if (role === "prefill") {
    const compute = async (tokens) => {
      await turn();
      return prefill(tokens);
    };
    return new PrefillWorker({ transport, prefill: compute, concurrency: 4, maxWaiting: 4_096 });
  }
  const step = async (kv, lastToken, position, signal) => {
    await turn();
    if (isHeld(kv, position)) await ended(signal);
    return decodeStep(kv, lastToken, position);
  };
  return new DecodeWorker({ transport, decodeStep: step, concurrency: 64, maxWaiting: 4_096 });
}
