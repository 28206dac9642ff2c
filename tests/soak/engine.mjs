// A fake engine in a process of its own, on the built package, which fails by chance. It says where it listens. Told to hang,
// it answers nothing that it is asked from then on; asked how it stands, it says so.
import { serveFakeEngine } from "kvroute/testing/node";

const { seed, rates, ...options } = JSON.parse(process.argv[2]);
let isHanging = false;
let state = seed >>> 0;

/** Draws a number below 1. */
function random() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

/** What may go wrong, each as often as its rate says. */
const FAULTS = {
  busy: () => ({ kind: "status", status: 429 }),
  overloaded: () => ({ kind: "status", status: 503, retryAfterSeconds: 0 }),
  broken: () => ({ kind: "status", status: 500 }),
  refuse: () => ({ kind: "refuse" }),
  slow: () => ({ kind: "slow", delayMs: 20 }),
  die: () => ({ kind: "die", afterEvents: Math.floor(random() * 6) }),
  truncate: () => ({ kind: "truncate", afterEvents: Math.floor(random() * 6) }),
};

function faultOf({ body }) {
  if (isHanging) return { kind: "hang" };
  let left = random();
  for (const [name, rate] of Object.entries(rates)) {
    left -= rate;
    if (left >= 0) continue;
    // What is no stream and ends early looks whole to whoever does not read it: of that, engines are believed.
    return name === "truncate" && body.stream !== true ? null : FAULTS[name]();
  }
  return null;
}

const engine = await serveFakeEngine({ ...options, faults: faultOf });
process.on("message", ({ hang }) => {
  if (hang !== undefined) isHanging = hang;
  else process.send?.({ stats: engine.stats() });
});
process.on("disconnect", () => process.exit());
process.send?.({ url: engine.url });
