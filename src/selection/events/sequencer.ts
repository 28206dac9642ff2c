/** A message with the number that its engine gave it. */
export interface Numbered {
  readonly seq: number;
  /** When the engine made it, by the engine's clock. */
  readonly ts: number | undefined;
  /** Whether it answers a request for a replay. */
  readonly replayed: boolean;
  /** What it takes in memory while it waits, in bytes. */
  readonly bytes: number;
}

/** What a sequencer does with a stream. */
export interface StreamSink<M extends Numbered> {
  /** Takes the next message in order. */
  apply(message: M): void;
  /** Says that the engine has started anew: nothing that it said before holds. */
  restarted(): void;
  /** Says that the messages from `first` to `last` will never come. */
  lost(first: number, last: number): void;
}

/** What became of a message. */
export type Reception = "taken" | "duplicate" | "full";

/**
 * Brings the messages of one publisher into the order of their numbers, whatever was lost, doubled or replayed.
 *
 * Messages ahead of a gap are kept, up to so many bytes; when there is no room, those furthest ahead go, which a later
 * replay brings again. A publisher numbers from 0 and never goes back, so a live message with a number that was passed
 * and a later time shows that it has restarted.
 */
export class Sequencer<M extends Numbered> {
  readonly #sink: StreamSink<M>;
  readonly #maxBytes: number;
  /** Messages ahead of the gap. */
  readonly #ahead = new Map<number, M>();
  /** Their numbers in ascending order. */
  #numbers: number[] = [];
  #bytes = 0;
  #next = 0;
  /** The message with the highest number. */
  #newest: Pick<Numbered, "seq" | "ts"> | null = null;
  /** When message 0 was made. */
  #firstTs: number | undefined;
  /** The message that showed a restart, and the newest one before: a replay may still bring some of that time. */
  #turn: { readonly seq: number; readonly ts: number; readonly beforeTs: number } | null = null;
  /** The first number of the replay that was asked for and has not ended. */
  #asked: number | null = null;
  #toAsk: number | null = null;
  /** Whether nothing has shown how far the publisher is, since the reset. */
  #isBlind = false;

  constructor(sink: StreamSink<M>, maxBytes: number) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
  }

  /** The first number that was not applied. */
  get next(): number {
    return this.#next;
  }

  /** The highest number that was seen; -1 if none was. */
  get highest(): number {
    return this.#newest?.seq ?? -1;
  }

  /** Tells whether a replay was asked for that has not ended. */
  get isAsking(): boolean {
    return this.#asked !== null;
  }

  /** Counts the messages that wait behind a gap. */
  get waiting(): number {
    return this.#ahead.size;
  }

  /** Tells whether messages are missing. */
  get hasGap(): boolean {
    return this.#next <= this.highest;
  }

  /** Tells whether it is unknown since a reset how far the publisher is: no live message came, and no replay ended. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** Takes a message, and all that wait for it. */
  receive(message: M): Reception {
    if (this.#isOutdated(message)) return "duplicate";
    if (this.#isRestart(message)) {
      this.#restart(message);
      this.#sink.restarted();
    }
    const { seq, ts, replayed } = message;
    if (!replayed) this.#isBlind = false;
    if (seq > this.highest) this.#newest = { seq, ts };
    if (seq === 0) this.#firstTs = ts;
    const reception = this.#take(message);
    this.#drain();
    if (this.#asked === null && this.hasGap) this.#ask(this.#next);
    return reception;
  }

  /** Forgets the stream and asks for all of it. */
  reset(): void {
    this.#ahead.clear();
    this.#numbers = [];
    this.#bytes = 0;
    this.#next = 0;
    this.#newest = null;
    this.#firstTs = undefined;
    this.#turn = null;
    this.#isBlind = true;
    this.#ask(0);
  }

  /** Gives the number to ask a replay from, once for each replay; `null` if none is needed. */
  takeRequest(): number | null {
    const from = this.#toAsk;
    this.#toAsk = null;
    return from;
  }

  /** Says that the replay has ended: what is missing still was not in it, and is lost if it brought nothing at all. */
  replayEnded(): void {
    const from = this.#asked;
    if (from === null) return;
    this.#asked = null;
    if (this.#newest !== null) this.#isBlind = false;
    if (this.hasGap && this.#next === from) this.#giveUp();
    if (this.hasGap) this.#ask(this.#next);
  }

  #take(message: M): Reception {
    const { seq } = message;
    if (seq < this.#next || this.#ahead.has(seq)) return "duplicate";
    if (seq > this.#next) return this.#keep(message);
    this.#sink.apply(message);
    this.#next = seq + 1;
    return "taken";
  }

  #keep(message: M): Reception {
    this.#ahead.set(message.seq, message);
    this.#numbers.splice(this.#placeOf(message.seq), 0, message.seq);
    this.#bytes += message.bytes;
    while (this.#bytes > this.#maxBytes) this.#drop(this.#numbers.pop() as number);
    return this.#ahead.has(message.seq) ? "taken" : "full";
  }

  #drop(seq: number): void {
    const message = this.#ahead.get(seq) as M;
    this.#ahead.delete(seq);
    this.#bytes -= message.bytes;
  }

  /** Applies what waits and has become the next. A message that cannot be applied stays. */
  #drain(): void {
    let applied = 0;
    try {
      for (let message = this.#ahead.get(this.#next); message !== undefined; message = this.#ahead.get(this.#next)) {
        this.#sink.apply(message);
        this.#drop(message.seq);
        this.#next = message.seq + 1;
        applied++;
      }
    } finally {
      this.#numbers.splice(0, applied);
    }
  }

  #giveUp(): void {
    const first = this.#next;
    const end = this.#numbers[0] ?? this.highest + 1;
    this.#next = end;
    this.#sink.lost(first, end - 1);
    this.#drain();
  }

  #ask(from: number): void {
    this.#asked = from;
    this.#toAsk = from;
  }

  /** Finds the place of a number among those that wait. Most are the highest. */
  #placeOf(seq: number): number {
    const numbers = this.#numbers;
    let low = 0;
    let high = numbers.length;
    if (high > 0 && (numbers[high - 1] as number) < seq) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((numbers[middle] as number) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #restart({ seq, ts }: M): void {
    const beforeTs = this.#newest?.ts;
    this.reset();
    if (ts !== undefined && beforeTs !== undefined && ts > beforeTs) this.#turn = { seq, ts, beforeTs };
  }

  /** Tells whether a message was made before the restart: numbers and times of one start grow together. */
  #isOutdated({ replayed, seq, ts }: M): boolean {
    if (!replayed || ts === undefined || this.#turn === null) return false;
    return ts <= this.#turn.beforeTs || (seq > this.#turn.seq && ts < this.#turn.ts);
  }

  #isRestart(message: M): boolean {
    const newest = this.#newest;
    if (message.replayed || newest === null || message.seq > newest.seq) return false;
    if (message.ts === undefined || newest.ts === undefined) return message.seq === 0;
    if (message.seq === 0 && this.#firstTs !== undefined) return message.ts !== this.#firstTs;
    return message.ts > newest.ts;
  }
}
