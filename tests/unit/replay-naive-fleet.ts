import type { TraceRequest } from "../../src/sim/trace.js";

/** A request on its way through the naive fleet. Tokens and milliseconds are the same: a worker prefills a token in one. */
interface Job {
  readonly request: TraceRequest;
  readonly sentMs: number;
  readonly worker: number;
  readonly serial: number;
  readonly tokens: number;
  tokensLeft: number;
  answerLeft: number;
}

/** What the chosen worker looked like when a request was sent to it. */
export interface Sight {
  readonly atMs: number;
  readonly activePrefills: number;
  readonly activePrefillTokens: number;
  readonly activeRequests: number;
}

export interface NaiveOutcome {
  readonly delays: readonly number[];
  readonly sights: readonly Sight[];
}

export interface NaiveFleetOptions {
  readonly workers: number;
  readonly decodeMsPerToken: number;
  readonly closedLoop: boolean;
}

/** Serves a trace in turns on workers with unlimited caches, millisecond by millisecond, to hold the real fleet against. */
export function serveNaively(requests: readonly TraceRequest[], options: NaiveFleetOptions): NaiveOutcome {
  const { workers, decodeMsPerToken, closedLoop } = options;
  const caches = Array.from({ length: workers }, () => new Set<bigint>());
  const held: TraceRequest[] = [];
  const delays: number[] = [];
  const sights: Sight[] = [];
  let jobs: Job[] = [];
  let serial = 0;
  let nowMs = 0;

  const send = (request: TraceRequest): void => {
    const worker = serial % workers;
    const mine = jobs.filter((job) => job.worker === worker);
    const waiting = mine.filter((job) => job.tokensLeft > 0);
    sights.push({
      atMs: nowMs,
      activePrefills: waiting.length,
      activePrefillTokens: waiting.reduce((sum, job) => sum + job.tokens, 0),
      activeRequests: mine.length,
    });
    const hashes = [...request.sequenceHashes];
    const cache = caches[worker] as Set<bigint>;
    const cold = hashes.findIndex((hash) => !cache.has(hash));
    const hits = cold < 0 ? hashes.length : cold;
    for (const hash of hashes) cache.add(hash);
    const tokens = Math.max(1, request.promptTokens - hits * request.blockTokens);
    const answerLeft = request.outputTokens * decodeMsPerToken;
    jobs.push({ request, sentMs: nowMs, worker, serial, tokens, tokensLeft: tokens, answerLeft });
    serial++;
  };
  const isUnderWay = ({ session }: TraceRequest): boolean => jobs.some((job) => job.request.session === session);

  /** Sends the next request of the session of a job that has ended. */
  const follow = ({ request: { session } }: Job): void => {
    const next = closedLoop ? held.findIndex((request) => request.session === session) : -1;
    if (next >= 0) send(held.splice(next, 1)[0] as TraceRequest);
  };

  /** Lets a millisecond pass: each worker goes on with the first prefill of its queue, and every answer goes on. */
  const tick = (): void => {
    const ending: Job[] = [];
    const running = new Set<number>();
    for (const job of jobs) {
      if (job.tokensLeft > 0) {
        if (running.has(job.worker)) continue;
        running.add(job.worker);
        job.tokensLeft--;
        if (job.tokensLeft > 0) continue;
        delays.push(nowMs + 1 - job.sentMs);
      } else {
        job.answerLeft--;
      }
      if (job.answerLeft === 0) ending.push(job);
    }
    nowMs++;
    jobs = jobs.filter((job) => !ending.includes(job)); // all that ends now has ended for who is sent now
    for (const job of ending) follow(job);
  };

  for (const request of requests) {
    while (nowMs < request.timestampMs) tick();
    if (closedLoop && (isUnderWay(request) || held.some(({ session }) => session === request.session)))
      held.push(request);
    else send(request);
  }
  while (jobs.length > 0) tick();
  return { delays, sights };
}
