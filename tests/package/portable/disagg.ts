import type { DisaggRouter, PortLike, Transport } from "../../../src/disagg/index.js";
import { same } from "../../support/agree.js";
import { type Case, type Modules, Skip } from "./parts.js";

const ROUTER = 0;
const PREFILL = 1;
const DECODE = 2;

/** The three ends of a transport, and what closes them. */
interface Crew {
  readonly ends: readonly [Transport, Transport, Transport];
  close(): Promise<void>;
}

function inMemory({ disagg }: Modules): Promise<Crew> {
  const network = new disagg.MemoryNetwork();
  const ends = [network.connect(ROUTER), network.connect(PREFILL), network.connect(DECODE)] as const;
  return Promise.resolve({ ends, close: async () => void (await Promise.all(ends.map((end) => end.close()))) });
}

async function overPorts({ disagg }: Modules): Promise<Crew> {
  const { MessageChannel } = globalThis as { MessageChannel?: new () => { port1: PortLike; port2: PortLike } };
  if (MessageChannel === undefined) throw new Skip("the runtime has no MessageChannel");
  const hub = new disagg.TransportHub();
  const channels = [ROUTER, PREFILL, DECODE].map(() => new MessageChannel());
  for (const { port1 } of channels) hub.attach(disagg.messagePortPipe(port1));
  const [router, prefill, decode] = await Promise.all(
    channels.map(({ port2 }, rank) => disagg.connectMessagePort(port2, { rank })),
  );
  if (router === undefined || prefill === undefined || decode === undefined) throw new Error("Expected three ends.");
  const ends = [router, prefill, decode] as const;
  for (const rank of [PREFILL, DECODE]) {
    if (router.ranks.includes(rank)) continue;
    await new Promise<void>((resolve) => router.onPeerJoined((joined) => joined === rank && resolve()));
  }
  return {
    ends,
    async close() {
      await Promise.all(ends.map((end) => end.close()));
      await hub.close();
      for (const { port1, port2 } of channels) for (const port of [port1, port2]) port.close?.();
    },
  };
}

/** Runs a router and two workers whose answer is the prompt, backwards, for as long as `use` takes. */
async function withRouter(modules: Modules, connect: typeof overPorts, use: (router: DisaggRouter) => Promise<void>) {
  const { disagg } = modules;
  const crew = await connect(modules);
  const [routerEnd, prefillEnd, decodeEnd] = crew.ends;
  const prefill = new disagg.PrefillWorker({ transport: prefillEnd, prefill: cacheOf });
  const decode = new disagg.DecodeWorker({
    transport: decodeEnd,
    decodeStep: (kv, _last, position) => tokenBefore(kv, position) ?? disagg.EOS_TOKEN,
  });
  const running = [prefill.run(), decode.run()];
  const router = new disagg.DisaggRouter({
    transport: routerEnd,
    prefillWorkers: [PREFILL],
    decodeWorkers: [DECODE],
  });
  try {
    await use(router);
  } finally {
    await router.close();
    await crew.close();
    await Promise.allSettled(running);
  }
}

/** The "KV cache" of a prompt: its length, where decoding starts by convention, and its tokens. */
function cacheOf(tokens: BigInt64Array): Uint8Array<ArrayBuffer> {
  const kv = new Uint8Array(4 + tokens.byteLength);
  const view = new DataView(kv.buffer);
  view.setUint32(0, tokens.length, true);
  tokens.forEach((token, at) => {
    view.setBigInt64(4 + 8 * at, token, true);
  });
  return kv;
}

function tokenBefore(kv: Uint8Array, position: number): bigint | undefined {
  const view = new DataView(kv.buffer, kv.byteOffset, kv.byteLength);
  const at = 2 * view.getUint32(0, true) - position - 1;
  return at < 0 ? undefined : view.getBigInt64(4 + 8 * at, true);
}

async function answers(router: DisaggRouter): Promise<void> {
  const prompts = [BigInt64Array.of(5n, 6n, 2n ** 62n), BigInt64Array.from({ length: 3_000 }, (_, at) => BigInt(at))];
  const all = await Promise.all(prompts.map((tokens) => router.collect({ tokens, maxNewTokens: 4 })));
  same(
    "answers",
    [
      [2n ** 62n, 6n, 5n],
      [2_999n, 2_998n, 2_997n, 2_996n],
    ],
    all.map((answer) => Array.from(answer)),
  );
  const { complete, inFlight } = router.stats();
  same("stats", [2, 0], [complete, inFlight]);
}

async function aborts(router: DisaggRouter): Promise<void> {
  const controller = new AbortController();
  const reason = new Error("no more");
  const tokens = BigInt64Array.from({ length: 1_000 }, (_, at) => BigInt(at));
  let taken = 0;
  let thrown: unknown;
  try {
    for await (const token of router.route({ tokens, maxNewTokens: 1_000, signal: controller.signal })) {
      same("token", BigInt(999 - taken), token);
      if (++taken === 3) controller.abort(reason);
    }
  } catch (error) {
    thrown = error;
  }
  same("the signal's reason", true, thrown === reason);
  const { cancelled, inFlight } = router.stats();
  same("stats", [1, 0], [cancelled, inFlight]);
  same("the next", [1n], Array.from(await router.collect({ tokens: BigInt64Array.of(1n), maxNewTokens: 1 })));
}

export const disaggCases: readonly Case[] = [
  {
    name: "disaggregated requests are answered in memory",
    run: (modules) => withRouter(modules, inMemory, answers),
  },
  {
    name: "a disaggregated request is aborted in memory, and the next is answered",
    run: (modules) => withRouter(modules, inMemory, aborts),
  },
  {
    name: "disaggregated requests are answered over message ports",
    run: (modules) => withRouter(modules, overPorts, answers),
  },
  {
    name: "a disaggregated request is aborted over message ports, and the next is answered",
    run: (modules) => withRouter(modules, overPorts, aborts),
  },
];
