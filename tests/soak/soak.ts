import type { Clock } from "../../src/clock.js";
import { systemClock } from "../../src/system.js";
import type { Send } from "./clients.js";
import type { SoakEngine } from "./engines.js";
import { type Reading, readingOf } from "./reading.js";
import { type Plan, planOf } from "./traffic.js";

/** Longer than any request can take whose router keeps its limits. */
const HUNG_MS = 60_000;
const HUNG = `Nothing came within ${HUNG_MS} ms.`;

type End = Reading | { readonly kind: "aborted" };

/** The clock of the runtime, with a count of the timers that are set. */
export class CountedClock implements Clock {
  readonly #set = new Set<unknown>();

  get pending(): number {
    return this.#set.size;
  }

  now(): number {
    return systemClock.now();
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    const handle = systemClock.setTimeout(() => {
      this.#set.delete(handle);
      callback();
    }, delayMs);
    this.#set.add(handle);
    return handle;
  }

  clearTimeout(handle: unknown): void {
    this.#set.delete(handle);
    systemClock.clearTimeout(handle);
  }
}

export interface SoakOptions {
  readonly send: Send;
  readonly seed: number;
  readonly requests: number;
  readonly concurrency: number;
  /** What is done when so many requests have ended. */
  readonly script: ReadonlyMap<number, () => unknown>;
}

/** Many clients at a time, and what each of them got. */
export class Soak {
  /** Answers by kind, errors by status and code. */
  readonly counts: Record<string, number> = {};
  /** What no client should get. */
  readonly unclear: string[] = [];
  readonly #options: SoakOptions;
  /** The words of whole answers by what they depend on, and the words that came of others. */
  readonly #texts = new Map<string, string>();
  readonly #parts: { readonly key: string; readonly text: string }[] = [];
  #begun = 0;
  #ended = 0;

  constructor(options: SoakOptions) {
    this.#options = options;
  }

  /** Plays the requests up to a number, and all that the script has for them. */
  async playUpTo(requests: number): Promise<void> {
    const client = async () => {
      while (this.#begun < requests) await this.#play(this.#begun++);
    };
    await Promise.all(Array.from({ length: this.#options.concurrency }, client));
  }

  /** Lists answers that broke off and whose words are not the beginning of what the whole answer says. */
  get wrongParts(): string[] {
    return this.#parts
      .filter(({ key, text }) => !(this.#texts.get(key) ?? text).startsWith(text))
      .map(({ key, text }) => `${key}: ${text}`);
  }

  async #play(index: number): Promise<void> {
    const plan = planOf(this.#options.seed, index);
    this.#count(plan, await this.#ask(plan));
    this.#ended++;
    await this.#options.script.get(this.#ended)?.();
  }

  async #ask(plan: Plan): Promise<End> {
    const controller = new AbortController();
    const { abort } = plan;
    const hung = setTimeout(() => controller.abort(HUNG), HUNG_MS);
    const leave = () => controller.abort("enough");
    const timer = abort !== undefined && "afterMs" in abort ? setTimeout(leave, abort.afterMs) : undefined;
    let chunks = 0;
    const onChunk = () => {
      if (abort !== undefined && "afterChunks" in abort && ++chunks === abort.afterChunks) leave();
    };
    try {
      const got = await this.#options.send(plan, controller.signal, onChunk);
      return endOf(controller.signal) ?? readingOf(plan, got);
    } catch (error) {
      return endOf(controller.signal) ?? { kind: "unclear", why: `${error}` };
    } finally {
      clearTimeout(hung);
      clearTimeout(timer);
    }
  }

  #count(plan: Plan, end: End): void {
    this.#add(end.kind === "error" ? `${end.status} ${end.code}` : end.kind);
    if (end.kind === "unclear") this.#accuse(plan, end.why);
    if (end.kind === "error event") this.#parts.push({ key: plan.key, text: end.text });
    if (end.kind !== "whole") return;
    const known = this.#texts.get(plan.key);
    this.#texts.set(plan.key, end.text);
    if (known !== undefined && known !== end.text) this.#accuse(plan, `${end.text}, where others got ${known}`);
  }

  #accuse({ path, isStream }: Plan, why: string): void {
    this.unclear.push(`${path}${isStream ? " streamed" : ""}: ${why}`);
  }

  #add(kind: string): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }
}

/** How a request ended whose client did not wait for its end. */
function endOf({ aborted, reason }: AbortSignal): End | undefined {
  if (!aborted) return undefined;
  return reason === HUNG ? { kind: "unclear", why: HUNG } : { kind: "aborted" };
}

/** What goes wrong with four engines while so many requests pass: crashes, silence, and a process that stands still. */
export function calamities(engines: readonly SoakEngine[], requests: number, at: number): Map<number, () => unknown> {
  const [a, b, c, d] = engines as [SoakEngine, SoakEngine, SoakEngine, SoakEngine];
  const script = new Map<number, () => unknown>();
  const when = (part: number, act: () => unknown) => script.set(Math.floor(requests * part) + at, act);
  when(0.1, () => a.kill());
  when(0.16, () => a.start());
  when(0.3, () => b.hang(true));
  when(0.36, () => b.hang(false));
  when(0.45, () => c.kill());
  when(0.48, () => d.kill());
  when(0.52, () => c.start());
  when(0.54, () => d.start());
  when(0.6, () => d.freeze(true));
  when(0.66, () => d.freeze(false));
  when(0.8, () => b.kill());
  when(0.82, () => b.start());
  return script;
}
