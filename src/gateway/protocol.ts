import type { Dialect } from "./dialect.js";
import { isObject, type JsonObject } from "./prompt/body.js";
import { mergeUsage, type Usage, usageOf } from "./usage.js";

/** Choices of one answer that are told apart: more than any client asks for. */
export const CHOICES_MAX = 1_024;

/** Follows the events of a streamed answer: what it took, and whether it is whole. */
export class ProtocolReader {
  readonly #dialect: Dialect;
  readonly #openChoices = new Set<unknown>();
  #hasFinished = false;
  #hasEnded = false;
  #hasFailed = false;
  #usage: Usage | undefined;
  #outputTokens = 0;
  #responseId: unknown;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Whether the event that ends the answer has come: nothing is missing any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether the engine has reported an error in the stream. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Whether the stream may end here: it has ended, or all its choices have finished and only the last word is missing. */
  get isWhole(): boolean {
    return this.#hasEnded || (this.#hasFinished && this.#openChoices.size === 0);
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** What names the answer, where the engine may keep it under that name. */
  get responseId(): unknown {
    return this.#responseId;
  }

  /** Tokens of output so far: as the engine counts them, or else one an event. */
  get outputTokens(): number {
    return Math.max(this.#outputTokens, this.#usage?.outputTokens ?? 0);
  }

  /** Reads the data of an event. What is not of the protocol is passed over. */
  read(data: string): void {
    if (data === "[DONE]") {
      this.#hasEnded = true;
      return;
    }
    const event = parse(data);
    if (event === undefined) return;
    if (event["error"] !== undefined && event["error"] !== null) this.#fail();
    else if (this.#dialect === "responses") this.#readResponses(event);
    else if (this.#dialect === "messages") this.#readMessages(event);
    else this.#readChoices(event);
  }

  #readChoices({ choices, usage }: JsonObject): void {
    this.#note(usage);
    if (!Array.isArray(choices)) return;
    for (const choice of choices.slice(0, CHOICES_MAX)) {
      if (!isObject(choice)) continue;
      this.#outputTokens++;
      if (choice["finish_reason"] === null || choice["finish_reason"] === undefined) this.#open(choice["index"]);
      else this.#finish(choice["index"]);
    }
  }

  #readResponses({ type, response }: JsonObject): void {
    if (typeof type !== "string") return;
    if (isObject(response)) this.#responseId = response["id"];
    if (type.endsWith(".delta")) this.#outputTokens++;
    if (type === "error" || type === "response.failed") this.#fail();
    if (type !== "response.completed" && type !== "response.incomplete") return;
    if (isObject(response)) this.#note(response["usage"]);
    this.#hasEnded = true;
  }

  #readMessages({ type, message, usage }: JsonObject): void {
    if (type === "content_block_delta") this.#outputTokens++;
    if (type === "message_start" && isObject(message)) this.#note(message["usage"]);
    if (type === "message_delta") this.#note(usage);
    if (type === "error") this.#fail();
    if (type === "message_stop") this.#hasEnded = true;
  }

  #open(index: unknown): void {
    if (this.#openChoices.size < CHOICES_MAX) this.#openChoices.add(index);
  }

  #finish(index: unknown): void {
    this.#openChoices.delete(index);
    this.#hasFinished = true;
  }

  #fail(): void {
    this.#hasFailed = true;
    this.#hasEnded = true;
  }

  #note(usage: unknown): void {
    const read = usageOf(usage, this.#dialect);
    if (read !== undefined) this.#usage = mergeUsage(this.#usage, read);
  }
}

function parse(data: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
