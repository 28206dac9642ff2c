import fc from "fast-check";
import { expect, test } from "vitest";
import { Answer } from "../../src/disagg/router/answer.js";
import { scaled } from "../support/scale.js";
import { quiet } from "./router-clock.js";

type Verb = "next" | "push" | "end" | "fail" | "fail at once" | "return";
const VERBS: readonly Verb[] = ["next", "push", "end", "fail", "fail at once", "return"];

/** What a reader of an answer must see, written down at once for every next(): a list in place of a queue of promises. */
class Naive {
  readonly results: (string | undefined)[] = [];
  readonly #unread: string[] = [];
  readonly #asked: number[] = [];
  #failure: string | undefined;
  #isOver = false;
  begun = 0;
  left = 0;

  do(verb: Verb, index: number): void {
    if (verb === "next") this.#next();
    else if (verb === "return") this.#leave();
    else if (this.begun > 0 && !this.#isOver) this.#hear(verb, index);
  }

  #next(): void {
    this.results.push(undefined);
    this.#asked.push(this.results.length - 1);
    if (!this.#isOver && this.begun === 0) this.begun++;
    this.#serve();
  }

  #hear(verb: Verb, index: number): void {
    if (verb === "push") this.#unread.push(`${index}`);
    else {
      this.#isOver = true;
      if (verb === "fail at once") this.#unread.length = 0;
      if (verb !== "end") this.#failure = `failed ${index}`;
    }
    this.#serve();
  }

  #leave(): void {
    if (this.begun > 0 && !this.#isOver) this.left++;
    this.#isOver = true;
    this.#failure = undefined;
    this.#unread.length = 0;
    this.#serve();
  }

  #serve(): void {
    while (this.#asked.length > 0) {
      const result = this.#unread.shift() ?? this.#takeFailure() ?? (this.#isOver ? "done" : undefined);
      if (result === undefined) return;
      this.results[this.#asked.shift() as number] = result;
    }
  }

  #takeFailure(): string | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }
}

async function play(verbs: readonly Verb[]): Promise<void> {
  const naive = new Naive();
  const counts = { begun: 0, left: 0 };
  const answer = new Answer({
    begin: () => {
      counts.begun++;
    },
    leave: () => {
      counts.left++;
    },
  });
  const results: (string | undefined)[] = [];
  for (const [index, verb] of verbs.entries()) {
    if (verb === "next") read(answer, results);
    else if (verb === "return") void answer.return();
    else if (counts.begun > 0) {
      if (verb === "push") answer.push(BigInt(index));
      else if (verb === "end") answer.end();
      else answer.fail(`failed ${index}`, verb === "fail at once");
    }
    naive.do(verb, index);
  }
  await quiet();
  expect({ results, ...counts }).toEqual({ results: naive.results, begun: naive.begun, left: naive.left });
}

function read(answer: Answer, results: (string | undefined)[]): void {
  const at = results.push(undefined) - 1;
  answer.next().then(
    ({ done, value }) => {
      results[at] = done ? "done" : `${value}`;
    },
    (reason: string) => {
      results[at] = reason;
    },
  );
}

test("an answer gives every reader what a naive list does: every sequence of up to five calls", async () => {
  const sequences = (length: number): Verb[][] =>
    length === 0 ? [[]] : sequences(length - 1).flatMap((rest) => VERBS.map((verb) => [...rest, verb]));
  for (let length = 0; length <= 5; length++) await Promise.all(sequences(length).map(play));
});

test("an answer gives every reader what a naive list does: longer ones", async () => {
  const verbs = fc.array(fc.constantFrom(...VERBS, "next" as const, "push" as const, "push" as const), {
    maxLength: 40,
  });
  await fc.assert(fc.asyncProperty(verbs, play), { numRuns: scaled(500) });
});
