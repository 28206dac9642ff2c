import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { DONE_SENTINEL, EOS_TOKEN, encodePrefillRequest, encodePromptTokens, TAGS } from "../../src/disagg/index.js";
import type { Envelope } from "../../src/transport/types.js";
import { type Plan, Stage } from "./router-stage.js";
import { type Sequence, sequences } from "./sequences-vectors.js";

/** The KV cache of the transcripts: the prompt length as u32, and the first token; two bytes for an empty prompt. */
function prefill(tokens: BigInt64Array): Uint8Array<ArrayBuffer> {
  if (tokens.length === 0) return Uint8Array.of(9, 9);
  const kv = new DataView(new ArrayBuffer(12));
  kv.setUint32(0, tokens.length, true);
  kv.setBigInt64(4, tokens[0] as bigint, true);
  return new Uint8Array(kv.buffer);
}

const promptLength = (kv: Uint8Array) =>
  kv.length < 4 ? 0 : new DataView(kv.buffer, kv.byteOffset).getUint32(0, true);

/** A step function that gives 100 + position, but for the steps (counted from 0) of which it knows better. */
const steps =
  (special: Record<number, bigint> = {}) =>
  (kv: Uint8Array, _last: bigint, position: number) =>
    special[position - promptLength(kv)] ?? BigInt(100 + position);

type Step = (kv: Uint8Array, last: bigint, position: number) => bigint;

interface Outcome {
  readonly answers: readonly (readonly bigint[] | { readonly code: string; readonly tokens?: number })[];
  readonly sent: readonly Envelope[];
  readonly stage: Stage;
}

/** Runs a case of the transcripts here. */
async function run(name: string, decodeStep: Step, plan: Plan = {}): Promise<Outcome> {
  const { config, requests, concurrent, delivery } = sequences.get(name) as Sequence;
  const sent: Envelope[] = [];
  const { maxKvTransferBytes: maxKvBytes } = config;
  const stage = new Stage({
    routers: [config.routerRank],
    prefill: config.prefillWorkers,
    decode: config.decodeWorkers,
    network: () => ({ reorders: delivery === "by-tag", loses: (envelope) => sent.push(envelope) === 0 }),
    router: { tieBreak: "first", maxKvBytes },
    prefillWorker: { prefill, maxKvBytes },
    decodeWorker: { decodeStep, maxKvBytes },
    ...plan,
  });
  const ask = ({ promptTokens, maxNewTokens, session }: Sequence["requests"][number]) => {
    const tokens = BigInt64Array.from(promptTokens, BigInt);
    const answer = stage.router.collect({ tokens, maxNewTokens, session: session ?? undefined });
    return answer.catch(({ code, tokens }) => (tokens === undefined ? { code } : { code, tokens }));
  };
  const answers = concurrent ? await stage.clock.value(Promise.all(requests.map(ask))) : [];
  if (!concurrent) for (const request of requests) answers.push(await stage.clock.value(ask(request)));
  return { answers, sent, stage };
}

const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** What went from rank to rank, in order for each pair of ranks. */
function ways(messages: readonly { from: number; to: number; tag: number; hex: string }[]): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (const { from, to, tag, hex } of messages) {
    const way = `${from}→${to}`;
    lists[way] = [...(lists[way] ?? []), `${tag} ${hex}`];
  }
  return lists;
}

function expectSameMessages(name: string, sent: readonly Envelope[]): void {
  const ours = sent.map(({ source, destination, tag, bytes }) => ({
    from: source,
    to: destination,
    tag,
    hex: hex(bytes),
  }));
  expect(ways(ours)).toEqual(ways((sequences.get(name) as Sequence).sent));
}

function expectAfter(name: string, stage: Stage, sessions: number): void {
  const last = (sequences.get(name) as Sequence).results.at(-1);
  const { nextRequestId } = stage.router.stats();
  expect({ nextRequestId: `${nextRequestId}`, sessions: stage.router.stats().sessions }).toEqual({
    nextRequestId: last?.nextRequestId,
    sessions,
  });
  stage.expectRest();
}

const played = new Set<string>();
const sequence = (name: string, play: (name: string) => Promise<void>) => {
  played.add(name);
  test(name, () => play(name));
};

sequence("sentinel-ends-generation", async (name) => {
  const { answers, sent, stage } = await run(name, steps({ 2: DONE_SENTINEL }));
  expect(answers).toEqual([
    [103n, 104n],
    [101n, 102n],
  ]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 1);
});

sequence("max-tokens-reached", async (name) => {
  const { answers, sent, stage } = await run(name, steps());
  expect(answers).toEqual([[102n, 103n]]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 0);
});

sequence("eos-token", async (name) => {
  const { answers, sent, stage } = await run(name, steps({ 1: EOS_TOKEN }));
  expect(answers).toEqual([[102n]]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 0);
});

sequence("zero-new-tokens", async (name) => {
  const { answers, sent, stage } = await run(name, steps());
  expect(answers).toEqual([[]]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 0);
});

// The step function ends at position 2: the second prompt has two tokens, so its answer is empty.
sequence("early-sentinel", async (name) => {
  const { answers, stage } = await run(name, (_kv, _last, position) =>
    position === 2 ? DONE_SENTINEL : BigInt(100 + position),
  );
  expect(answers).toEqual([[101n], []]);
  expectAfter(name, stage, 0);
});

sequence("kv-too-large", async (name) => {
  const { answers, sent, stage } = await run(name, steps());
  expect(answers).toEqual([{ code: "KVROUTE_DISAGG_KV_REFUSED", tokens: 0 }]);
  expect(sent.map(({ tag }) => tag)).not.toContain(TAGS.decodeRequest);
  expectAfter(name, stage, 0);
});

sequence("kv-too-large-for-decoder", async (name) => {
  const { answers, stage } = await run(name, steps(), { decodeWorker: { decodeStep: steps(), maxKvBytes: 8 } });
  expect(answers).toEqual([{ code: "KVROUTE_DISAGG_WORKER_FAILED", tokens: 0 }]);
  expectAfter(name, stage, 0);
  const next = stage.router.collect({ tokens: new BigInt64Array(0), maxNewTokens: 1 }); // a KV cache of two bytes
  expect(await stage.clock.value(next)).toEqual([100n]);
});

sequence("empty-prompt", async (name) => {
  const { answers, sent, stage } = await run(name, steps({ 1: DONE_SENTINEL }));
  expect(answers).toEqual([[100n]]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 0);
});

sequence("prefill-worker-down", async (name) => {
  const { answers, stage } = await run(name, steps(), { prefill: [], router: { prefillWorkers: [1] } });
  const down = { code: "KVROUTE_DISAGG_WORKER_LOST", tokens: 0 };
  expect(answers).toEqual([down, down]);
  expectAfter(name, stage, 0);
});

sequence("decode-worker-lost", async (name) => {
  const stages: Stage[] = [];
  const decodeStep: Step = (kv, last, position) => {
    if (position === 3) stages[0]?.network.disconnect(2);
    return steps()(kv, last, position);
  };
  const plan: Plan = { onStage: (stage) => stages.push(stage) };
  const { answers, stage } = await run(name, decodeStep, plan);
  expect(answers).toEqual([{ code: "KVROUTE_DISAGG_WORKER_LOST", tokens: 2 }]);
  expectAfter(name, stage, 0);
});

// Our router counts the prompt itself, so one that counts wrong is played by hand.
sequence("seq-len-mismatch", async (name) => {
  const { requests } = sequences.get(name) as Sequence;
  const [{ promptTokens, seqLen }] = requests as [Sequence["requests"][number]];
  const stage = new Stage();
  const stranger = stage.network.connect(9);
  const to = { destination: 1, router: 9, requestId: 1n };
  const prompt = encodePromptTokens(BigInt64Array.from(promptTokens, BigInt));
  await stranger.send({ ...to, tag: TAGS.promptTokens, sequence: 0, bytes: prompt });
  const request = encodePrefillRequest({ requestId: 1n, seqLen, decodeRank: 2 });
  await stranger.send({ ...to, tag: TAGS.prefillRequest, sequence: 1, bytes: request });
  const [answer] = [await stranger.receive()[Symbol.asyncIterator]().next()];
  expect((answer.value as Envelope).tag).toBe(TAGS.error);
  expect(new TextDecoder().decode((answer.value as Envelope).bytes)).toContain(
    "a prompt of 3 tokens, as its request says, got 2",
  );
  const next = stage.router.collect({ tokens: new BigInt64Array(0), maxNewTokens: 0 });
  expect(await stage.clock.value(next)).toEqual([]); // the worker goes on
  stage.expectRest();
});

sequence("two-requests-two-decoders", async (name) => {
  const { answers, sent, stage } = await run(name, steps({ 1: DONE_SENTINEL }));
  expect(answers).toEqual([[101n], [102n], [101n]]);
  expectSameMessages(name, sent);
  expectAfter(name, stage, 1);
});

sequence("two-prefill-workers-one-decoder", async (name) => {
  const { answers, stage } = await run(name, steps({ 1: DONE_SENTINEL }));
  expect(answers).toEqual([[101n], [102n]]);
  expectAfter(name, stage, 0);
});

sequence("no-workers", async (name) => {
  const { answers, sent, stage } = await run(name, steps());
  expect(answers).toEqual([{ code: "KVROUTE_NO_WORKERS" }]);
  expect(sent).toEqual([]);
  expectAfter(name, stage, 0);
});

sequence("fifo-prefill", async (name) => {
  const { answers, stage } = await run(name, steps());
  expect(answers).toEqual([[102n, 103n]]);
  expectAfter(name, stage, 0);
});

test("every case of the transcripts is played, and stands in the table of docs/disagg.md", () => {
  expect([...played].sort()).toEqual([...sequences.keys()].sort());
  const page = readFileSync(new URL("../../docs/disagg.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| .+ \| .+ \|$/gm)].map((row) => row[1] as string);
  expect([...sequences.keys()].filter((name) => !rows.includes(name))).toEqual([]);
});
