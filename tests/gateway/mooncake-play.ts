import { createRouter, type Router } from "../../src/gateway/router.js";
import type { PolicyName } from "../../src/selection/policy.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { Prng } from "../../src/sim/prng.js";
import type { TraceRequest } from "../../src/sim/trace.js";
import { SteppedEngine, type SteppedEngineOptions } from "./mooncake-engine.js";

/** What a hash of the trace stands for, and as much of a text for it. */
export const BLOCK_TOKENS = 512;
const BLOCK_BYTES = 2_048;
/** Behind the blocks, so that the last of them can be reused: an engine computes the last token of a prompt in any case. */
const QUESTION = "And then?";
const PATIENCE_MS = 60_000;

export interface PlayOptions {
  readonly policy: PolicyName;
  readonly engines: number;
  readonly engine: Omit<SteppedEngineOptions, "name" | "blockSize">;
}

export interface Played {
  readonly requests: number;
  /** Full blocks of all prompts, and those of them that an engine found in its cache. */
  readonly blocks: number;
  readonly hitBlocks: number;
}

/** Plays requests through a router at engines in other processes. Time is virtual: it goes on when all have done what is due. */
export async function play(requests: readonly TraceRequest[], options: PlayOptions): Promise<Played> {
  const player = await Player.start(options);
  try {
    for (const request of requests) {
      await player.passTime(request.timestampMs);
      await player.send(request);
    }
    await player.passTime(Number.POSITIVE_INFINITY);
    return player.played();
  } finally {
    player.end();
  }
}

/** The text of a block, another for each id. */
function textOf(hashId: bigint): string {
  const words = `${hashId} says: `;
  return words.repeat(Math.ceil(BLOCK_BYTES / words.length)).slice(0, BLOCK_BYTES);
}

class Player {
  readonly #clock = new VirtualClock();
  #engines: readonly SteppedEngine[] = [];
  readonly #router: Router;
  #onNews: (() => void) | undefined;
  #failure: unknown;
  /** Who has taken the request that was sent last. */
  #taker: SteppedEngine | undefined;
  /** What clients have read. */
  #tokens = 0;
  #finished = 0;
  #hitBlocks = 0;
  #blocks = 0;

  private constructor(policy: PolicyName) {
    const prng = new Prng(0);
    this.#router = createRouter({ workers: [], policy, clock: this.#clock, random: () => prng.random() });
  }

  static async start({ engines, engine, policy }: PlayOptions): Promise<Player> {
    const player = new Player(policy);
    const onTaken = (taker: SteppedEngine) => {
      player.#taker = taker;
      player.#onNews?.();
    };
    const names = Array.from({ length: engines }, (_, index) => `e${index}`);
    const options = { ...engine, blockSize: BLOCK_TOKENS };
    player.#engines = await Promise.all(names.map((name) => SteppedEngine.start({ ...options, name }, onTaken)));
    for (const [index, { url }] of player.#engines.entries()) {
      player.#router.addWorker({ id: names[index] as string, url });
    }
    return player;
  }

  /** Lets all engines work up to a moment: a step of one of them, then whatever it leads to, then the next. */
  async passTime(untilMs: number): Promise<void> {
    for (;;) {
      const engine = this.#engines.reduce((first, one) => (dueOf(one) < dueOf(first) ? one : first));
      const dueMs = dueOf(engine);
      if (dueMs === Number.POSITIVE_INFINITY || dueMs > untilMs) break;
      this.#passOwnTime(dueMs);
      await engine.runUntil(dueMs);
      await this.#untilRead();
    }
    if (untilMs < Number.POSITIVE_INFINITY) this.#passOwnTime(untilMs);
  }

  /** Sends a request, and waits until an engine has taken it. */
  async send({ sequenceHashes }: TraceRequest): Promise<void> {
    this.#blocks += sequenceHashes.length;
    this.#taker = undefined;
    this.#ask([...sequenceHashes].map(textOf).join("") + QUESTION).catch((error) => {
      this.#failure = error;
      this.#onNews?.();
    });
    const taker = await this.#until(() => this.#taker, "an engine has taken the request");
    await taker.runUntil(this.#clock.now()); // if it is free, it begins
  }

  played(): Played {
    const { inFlight, selection } = this.#router.stats();
    if (inFlight + selection.bookings > 0) throw new Error("Expected a router that has nothing left to do.");
    return { requests: this.#finished, blocks: this.#blocks, hitBlocks: this.#hitBlocks };
  }

  end(): void {
    for (const engine of this.#engines) engine.kill();
  }

  #passOwnTime(untilMs: number): void {
    this.#clock.advance(Math.max(0, untilMs - this.#clock.now()));
  }

  /** Streams an answer of two tokens, so that the end of the prefill is a moment of its own: that of the first event. */
  async #ask(prompt: string): Promise<void> {
    const options = { max_tokens: 2, stream: true, stream_options: { include_usage: true } };
    const response = await this.#router.fetch("http://kvroute/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json", "x-now-ms": `${this.#clock.now()}` },
      body: JSON.stringify({ model: "fake-model", prompt, ...options }),
    });
    if (!response.ok || response.body === null) throw new Error(`The router said: ${await response.text()}`);
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + text).split("\n\n");
      rest = events.pop() as string;
      for (const event of events) this.#note(event.slice("data: ".length));
    }
    this.#finished++;
    this.#onNews?.();
  }

  #note(data: string): void {
    if (data === "[DONE]") return;
    const { choices, usage } = JSON.parse(data);
    if (choices[0]?.text) this.#tokens++;
    if (usage) this.#hitBlocks += (usage.prompt_tokens_details?.cached_tokens ?? 0) / BLOCK_TOKENS;
    this.#onNews?.();
  }

  /** Waits until the clients have read what the engines have written, so that the router knows it, too. */
  async #untilRead(): Promise<void> {
    let tokens = 0;
    let finished = 0;
    for (const { standing } of this.#engines) {
      tokens += standing.generationTokens;
      finished += standing.finished;
    }
    const isRead = () => this.#tokens === tokens && this.#finished === finished;
    await this.#until(isRead, `clients have read ${tokens} tokens and ${finished} ends`);
  }

  /** Waits until there is something to see, and gives it. */
  async #until<Seen>(look: () => Seen | undefined | false, what: string): Promise<Seen> {
    const late = setTimeout(() => {
      this.#failure = new Error(`Waited ${PATIENCE_MS} ms until ${what}.`);
      this.#onNews?.();
    }, PATIENCE_MS);
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        const seen = look();
        if (seen) return seen;
        await new Promise<void>((resolve) => {
          this.#onNews = resolve;
        });
      }
    } finally {
      clearTimeout(late);
    }
  }
}

const dueOf = ({ standing }: SteppedEngine) => standing.nextMs ?? Number.POSITIVE_INFINITY;
