import { BODY_COMPLEXITY_MAX, complexityOf, isObject, jsonOf } from "./body.js";
import { type CanonicalText, Mark, type MarkOf } from "./canonical-text.js";

/** What a tool is called, whatever the API calls its fields. */
export interface ToolCall {
  readonly id: unknown;
  readonly name: unknown;
  /** JSON text, or the value itself. */
  readonly args: unknown;
}

/** What of a message may stand in a prompt besides its role and content. */
export interface MessageExtra {
  readonly name?: unknown;
  /** Of the call that a result answers. */
  readonly id?: unknown;
  readonly isError?: boolean | undefined;
}

/** Writes messages as canonical text. All APIs of conversations come to this, as engines render them with one template. */
export class Conversation {
  readonly #text: CanonicalText;
  #role: unknown;
  #isOpen = false;
  #isFresh = false;
  #isReasoning = false;
  /** For the arguments of all calls, which are JSON within JSON. */
  #complexityLeft = BODY_COMPLEXITY_MAX;

  constructor(text: CanonicalText) {
    this.#text = text;
  }

  /** Whether more would be dropped. */
  get isFull(): boolean {
    return this.#text.isFull;
  }

  /** Whether a message is open whose last part is reasoning. */
  get isReasoning(): boolean {
    return this.#isReasoning;
  }

  /** Begins a message and ends the one before. */
  open(role: unknown, extra: MessageExtra = {}): void {
    this.close();
    this.#role = role;
    this.#isOpen = true;
    this.#text.field(Mark.message, role);
    this.#writeExtra(extra);
    this.#text.mark(Mark.content);
    this.#isFresh = true;
  }

  /** Goes on with the message of a role, or begins one. */
  continue(role: string): void {
    if (this.#role !== role) this.open(role);
  }

  /** Writes what no API has in the place of a message: the engine will say so. */
  stray(value: unknown): void {
    this.open("");
    this.value(value);
  }

  /** Ends the message that is open, if one is. The first of a user ends the opening of the conversation. */
  close(): void {
    if (!this.#isOpen) return;
    if (this.#role === "user") this.#text.endOpening();
    this.#isOpen = false;
    this.#isReasoning = false;
  }

  #writeExtra({ name, id, isError }: MessageExtra): void {
    if ((name ?? id ?? isError) === undefined) return;
    this.#text.field(Mark.extra, jsonOf([name, id, isError]));
  }

  /** Adds a part of text. The first stands without a mark, so that content as a string is the same as in one part. */
  text(text: string): void {
    if (!this.#isFresh || text === "") this.#text.mark(Mark.part);
    this.#text.text(text);
    this.#isFresh = false;
    this.#isReasoning = false;
  }

  reasoning(text: string): void {
    this.#field(Mark.reasoning, text);
    this.#isReasoning = true;
  }

  /** Adds an image or the like. `what` says what it is, `content` where it stands or what it holds. */
  media(what: readonly unknown[], content: string): void {
    this.#field(Mark.media, jsonOf(what));
    this.#text.media(content);
  }

  /** Adds a part whose kind is not known. */
  value(value: unknown): void {
    this.#field(Mark.value, jsonOf(withoutCacheControl(value)));
  }

  /** Adds a call of a tool to the message. Arguments count by their value, as engines parse them. */
  call({ id, name, args }: ToolCall): void {
    this.#field(Mark.call, id);
    this.#field(Mark.name, name);
    const json = typeof args === "string" ? this.#normalJson(args) : jsonOf(args);
    if (json === undefined) this.#field(Mark.raw, args as string);
    else this.#field(Mark.json, json);
  }

  /** Gives JSON text without its spaces; undefined for what is none, or would take long to parse. */
  #normalJson(text: string): string | undefined {
    const complexity = complexityOf(text);
    if (complexity > this.#complexityLeft) return undefined;
    this.#complexityLeft -= complexity;
    try {
      return JSON.stringify(JSON.parse(text));
    } catch {
      return undefined;
    }
  }

  #field(mark: MarkOf, value: unknown): void {
    this.#text.field(mark, value);
    this.#isFresh = false;
    this.#isReasoning = false;
  }
}

/** Leaves out what tells a provider where to cache: it moves from turn to turn and stands in no prompt. */
export function withoutCacheControl(value: unknown): unknown {
  if (!isObject(value) || !("cache_control" in value)) return value;
  const { cache_control: _, ...rest } = value;
  return rest;
}
