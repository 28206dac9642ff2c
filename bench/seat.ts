import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Runner, Suite } from "./harness.js";

/** What the harness asks of a contender's process. */
export type Question =
  | { readonly verb: "prepare" }
  | { readonly verb: "round" }
  | { readonly verb: "finish" }
  | { readonly verb: "size"; readonly column: number };

export interface Answer {
  /** Microseconds per operation, or bytes. */
  readonly value: number;
  readonly checksum: number;
}

/** A process in which one contender of one suite waits for questions. */
export interface Seat {
  ask(question: Question): Promise<Answer>;
  close(): void;
}

/** The argument that turns the entry file into a seat. */
const SEAT_FLAG = "--seat";

export function openSeat(entry: string, suite: number, contender: string): Seat {
  const child = fork(fileURLToPath(entry), [SEAT_FLAG, String(suite), contender], { execArgv: ["--expose-gc"] });
  return {
    ask: (question) => ask(child, contender, question),
    close: () => {
      if (child.connected) child.disconnect();
    },
  };
}

function ask(child: ChildProcess, contender: string, question: Question): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => {
      child.off("message", answered);
      reject(new Error(`Expected an answer to "${question.verb}" from ${contender}, but it ended with code ${code}.`));
    };
    const answered = (answer: unknown) => {
      child.off("exit", ended);
      resolve(answer as Answer);
    };
    child.once("exit", ended);
    child.once("message", answered);
    child.send(question);
  });
}

/** Answers questions if this process was opened as a seat; returns false if it was not. */
export async function serve(suites: readonly Suite[]): Promise<boolean> {
  const at = process.argv.indexOf(SEAT_FLAG);
  if (at < 0) return false;
  const suite = suites[Number(process.argv[at + 1])];
  const contender = process.argv[at + 2] ?? "";
  if (suite === undefined) throw new RangeError(`Expected a suite, got ${process.argv[at + 1]}.`);
  const answer = suite.kind === "time" ? timed(suite.contenders[contender]) : sized(suite.contenders[contender]);
  process.on("message", (question: Question) => {
    // A failure ends the process, and with it the benchmark: the rejection is not handled on purpose.
    void answer(question).then((reply) => process.send?.(reply));
  });
  return true;
}

function timed(make: (() => Promise<Runner>) | undefined): (question: Question) => Promise<Answer> {
  let runner: Runner | undefined;
  return async (question) => {
    if (question.verb === "prepare") {
      runner = await (make as () => Promise<Runner>)();
      globalThis.gc?.();
      return { value: 0, checksum: runner.digest() };
    }
    if (runner === undefined) throw new Error("Expected to be prepared before the first round.");
    return question.verb === "finish" ? { value: 0, checksum: runner.finish() } : round(runner);
  };
}

/**
 * Times a round after one that is not timed: others played in between, and their data stand in the caches. Without it
 * a round of 5 ms takes half as long again.
 */
async function round(runner: Runner): Promise<Answer> {
  await runner.run();
  const start = process.hrtime.bigint();
  const running = runner.run();
  const sum = typeof running === "number" ? running : await running;
  const nanoseconds = Number(process.hrtime.bigint() - start);
  return { value: nanoseconds / 1000 / runner.operations, checksum: sum + runner.digest() };
}

function sized(measure: ((column: number) => Promise<number>) | undefined): (question: Question) => Promise<Answer> {
  return async (question) => {
    if (question.verb !== "size" || measure === undefined)
      throw new Error(`Expected to measure, got ${question.verb}.`);
    return { value: await measure(question.column), checksum: 0 };
  };
}
