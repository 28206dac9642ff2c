import fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "../../src/sim/clock.js";
import { scaled } from "../support/scale.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, DONE, type HandCall, HandEngine, handStage, isIdle, token } from "./stage.js";

const STALL_MS = 1_000;

/** What the engine does next. */
type Move =
  | { readonly kind: "begin"; readonly status: number; readonly type: string }
  | { readonly kind: "send"; readonly text: string }
  | { readonly kind: "end" }
  | { readonly kind: "break" }
  | { readonly kind: "wait" }
  | { readonly kind: "removeWorker" };

/** How the client behaves: it reads so many chunks, and then it goes on, cancels or aborts. */
interface Client {
  readonly stream: boolean;
  readonly reads: number;
  readonly next: "read" | "cancel" | "abort" | "nothing";
  /** Whether it aborts before it has an answer. */
  readonly early: boolean;
}

const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({
    kind: fc.constant("begin" as const),
    status: fc.constantFrom(200, 200, 200, 404, 500),
    type: fc.constantFrom("text/event-stream", "application/json"),
  }),
  fc.record({
    kind: fc.constant("send" as const),
    text: fc.constantFrom(
      token("a"),
      token("b", "stop"),
      DONE,
      "data: {",
      "\n\n",
      '{"usage":{"prompt_tokens":3}}',
      "\u00e9",
      "garbage",
    ),
  }),
  fc.record({ kind: fc.constantFrom("end", "break", "wait", "removeWorker") }) as fc.Arbitrary<Move>,
);
const client: fc.Arbitrary<Client> = fc.record({
  stream: fc.boolean(),
  reads: fc.nat(3),
  next: fc.constantFrom("read", "cancel", "abort", "nothing"),
  early: fc.boolean(),
});
interface Life {
  readonly moves: readonly Move[];
  readonly client: Client;
  readonly isDeaf: boolean;
  readonly cancelFails: boolean;
}
const life: fc.Arbitrary<Life> = fc.record({
  moves: fc.array(move, { maxLength: 8 }),
  client,
  isDeaf: fc.boolean(),
  cancelFails: fc.boolean(),
});

function make(call: HandCall, { kind, ...move }: Move, stage: ReturnType<typeof handStage>, clock: VirtualClock): void {
  try {
    if (kind === "begin") call.begin((move as { type: string }).type, (move as { status: number }).status);
    else if (kind === "send") call.send((move as { text: string }).text);
    else if (kind === "end") call.end();
    else if (kind === "break") call.break();
    else if (kind === "wait") clock.advance(STALL_MS / 2);
    else if (stage.router.stats().workers.length > 1) stage.router.removeWorker("b");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the engine's body has ended before
  }
}

/** Waits until what has been set in motion has come to rest. */
const rest = async () => {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
};

async function behave(
  response: Promise<Response>,
  { reads, next }: Client,
  controller: AbortController,
): Promise<void> {
  try {
    const reader = (await response).body?.getReader();
    for (let read = 0; read < reads || next === "read"; read++) {
      if ((await reader?.read())?.value === undefined) return;
    }
    if (next === "cancel") await reader?.cancel("enough");
    if (next === "abort") controller.abort("enough");
  } catch {
    // whatever the client meets, the books must be right
  }
}

/** Lets requests live their lives, and looks whether each ended once and left nothing behind. */
async function play(lives: readonly Life[]): Promise<void> {
  const clock = new VirtualClock();
  const engine = new HandEngine();
  const workers = ["a", "b"].map((id) => ({ id, url: `http://${id}` }));
  const stage = { ...handStage({ clock, stallTimeoutMs: STALL_MS, workers, fetch: engine.fetch }), engine };
  const waiting: Promise<unknown>[] = [];
  const clients: Promise<void>[] = [];
  for (const [index, { client, isDeaf, cancelFails }] of lives.entries()) {
    engine.isDeaf = isDeaf;
    const controller = new AbortController();
    const init = { ...chat(`hello ${index}`, { stream: client.stream }), signal: controller.signal };
    const context = { waitUntil: (promise: Promise<unknown>) => void waiting.push(promise) };
    const response =
      index % 2 === 0 ? stage.router.fetch(CHAT_URL, init) : stage.router.handler(new Request(CHAT_URL, init), context);
    const call = await engine.call(index);
    if (cancelFails) call.cancelError = new Error("cannot be cancelled");
    clients.push(behave(response, client, controller));
    if (client.early) controller.abort("early");
  }
  for (let step = 0; step < 8; step++) {
    for (const [index, { moves }] of lives.entries()) {
      const next = moves[step];
      if (next !== undefined) make(engine.calls[index] as HandCall, next, stage, clock);
    }
    await rest();
  }
  clock.advance(3 * STALL_MS); // who has not ended yet has stalled
  await rest();
  const { outcomes, inFlight, selection, workers: states } = stage.router.stats();
  expect(inFlight).toBe(0);
  expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(lives.length);
  expect(selection).toMatchObject({ bookings: 0, expiredBookings: 0 });
  for (const state of states) expect(state).toMatchObject({ inFlight: 0, activePrefillTokens: 0, activeBlocks: 0 });
  expect(isIdle(stage.router)).toBe(true);
  expect(clock.pending).toBe(0);
  expect(waiting).toHaveLength(Math.floor(lives.length / 2));
  await Promise.all(waiting);
  await stage.router.close();
  let left = clients.length;
  const stays = lives.filter(({ client }) => client.next === "nothing").length;
  for (const done of clients) done.then(() => left--);
  await until(() => left <= stays, "no client waits");
}

test("whatever engine and client do, each request ends once, and all counters are back at zero", async () => {
  await fc.assert(fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), play), { numRuns: scaled(100) });
});

test("so it is in all short lives", async () => {
  const begins: Move[] = ["text/event-stream", "application/json"].map((type) => ({
    kind: "begin",
    status: 200,
    type,
  }));
  const texts: Move[] = [token("a"), DONE, "data: {"].map((text) => ({ kind: "send", text }));
  const others: Move[] = [...texts, { kind: "end" }, { kind: "break" }, { kind: "wait" }];
  const clients: Client[] = [
    { stream: true, reads: 0, next: "read", early: false },
    { stream: true, reads: 1, next: "cancel", early: false },
    { stream: true, reads: 1, next: "abort", early: false },
    { stream: false, reads: 0, next: "nothing", early: true },
  ];
  for (const begin of begins) {
    for (const second of others) {
      for (const third of others) {
        const moves = [begin, second, third];
        await play(clients.map((client) => ({ moves, client, isDeaf: false, cancelFails: true })));
      }
    }
  }
});
