import type { Engine, EngineRequest, EngineRun, RunEnd } from "../sim/engine.js";
import { bytesOfToken } from "./tokenizer.js";

/** What is wanted of the engine for one prompt. */
export interface Job {
  readonly prompt: Uint32Array;
  /** Tokens that the client wants at most; `undefined` is as many as it takes. */
  readonly maxTokens: number | undefined;
  /** The answer; `undefined` makes `naturalTokens` up. */
  readonly answer: Uint32Array | undefined;
  readonly naturalTokens: number;
  readonly loraName: string | undefined;
  readonly cacheSalt: string | undefined;
}

/** An answer on its way: its text by the token, and how it ended. */
export class Generation {
  readonly #run: EngineRun;
  readonly #naturalTokens: number;
  /** What was generated and not taken yet. No longer than the answer. */
  #waiting: Uint8Array[] = [];
  #wake: (() => void) | null = null;
  #end: RunEnd | null = null;

  /** @throws {EngineError} if the engine does not take it */
  constructor(engine: Engine, job: Job) {
    const { prompt, answer, loraName, cacheSalt } = job;
    this.#naturalTokens = answer?.length ?? job.naturalTokens;
    const maxTokens = Math.min(job.maxTokens ?? Number.POSITIVE_INFINITY, this.#naturalTokens);
    const request: EngineRequest = { promptTokens: prompt, maxTokens, answer, loraName, cacheSalt };
    this.#run = engine.submit(request, {
      onToken: (token) => {
        this.#waiting.push(bytesOfToken(token));
        this.#wake?.();
      },
      onEnd: (end) => {
        this.#end = end;
        this.#wake?.();
      },
    });
  }

  get usage(): { readonly promptTokens: number; readonly outputTokens: number; readonly cachedTokens: number } {
    return this.#run;
  }

  /** Whether the answer was cut off by a limit. */
  get isCutOff(): boolean {
    return this.#run.outputTokens < this.#naturalTokens;
  }

  /** Gives the text as it comes. Ends without a word where the engine was closed. */
  async *pieces(): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    for (;;) {
      for (let bytes = this.#waiting.shift(); bytes !== undefined; bytes = this.#waiting.shift()) {
        const text = decoder.decode(bytes, { stream: true });
        if (text !== "") yield text;
      }
      if (this.#end !== null) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Waits for all of the text. */
  async text(): Promise<string> {
    let text = "";
    for await (const piece of this.pieces()) text += piece;
    return text;
  }

  abort(): void {
    this.#run.abort();
  }
}
