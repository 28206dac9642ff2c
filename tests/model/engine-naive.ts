// An engine in the plainest form: blocks are objects in one list, prefixes are compared token by token, and every count is
// taken anew. It knows neither hashes nor reservations.

export interface NaiveOptions {
  readonly numGpuBlocks: number;
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly enableChunkedPrefill: boolean;
  readonly enablePrefixCaching: boolean;
}

interface Block {
  /** All tokens up to the end of the block, `null` while it is private. */
  content: string | null;
  holders: number;
  /** When it was cached, and when the last holder left. */
  cachedAt: number;
  leftAt: number;
}

export interface NaiveRequest {
  readonly id: number;
  readonly tokens: number[];
  readonly maxTokens: number;
  readonly promptLength: number;
  computed: number;
  prefillEnd: number;
  blocks: Block[];
  isAborted: boolean;
}

export class NaiveEngine {
  readonly #options: NaiveOptions;
  readonly #nextToken: (request: NaiveRequest) => number;
  #blocks: Block[] = [];
  #time = 0;
  running: NaiveRequest[] = [];
  waiting: NaiveRequest[] = [];
  pass: { request: NaiveRequest; tokens: number }[] = [];

  constructor(options: NaiveOptions, nextToken: (request: NaiveRequest) => number) {
    this.#options = options;
    this.#nextToken = nextToken;
  }

  get active(): number {
    return this.#blocks.filter(({ holders }) => holders > 0).length;
  }

  /** Everything that is cached, each content once. */
  get cached(): Set<string> {
    return new Set(this.#blocks.flatMap(({ content }) => (content === null ? [] : [content])));
  }

  add(id: number, prompt: readonly number[], maxTokens: number): void {
    const rest = { computed: 0, prefillEnd: 0, blocks: [], isAborted: false };
    this.waiting.push({ id, tokens: [...prompt], promptLength: prompt.length, maxTokens, ...rest });
  }

  abort(id: number): void {
    this.waiting = this.waiting.filter((request) => request.id !== id);
    const request = this.running.find((one) => one.id === id);
    if (request === undefined) return;
    if (this.pass.some((entry) => entry.request === request)) request.isAborted = true;
    else this.#leave(request);
  }

  schedule(): [id: number, tokens: number][] {
    const { maxNumBatchedTokens, maxNumSeqs, enableChunkedPrefill, blockSize } = this.#options;
    this.pass = [];
    let budget = maxNumBatchedTokens;
    let preempted = false;
    for (const request of [...this.running]) {
      if (!this.running.includes(request)) continue;
      const tokens = Math.min(request.tokens.length - request.computed, budget);
      if (tokens === 0) break;
      while (this.running.includes(request) && !this.#take(request, request.computed + tokens)) {
        const victim = this.running.at(-1) as NaiveRequest;
        this.#leave(victim);
        this.waiting.unshift(victim);
        preempted = true;
      }
      if (!this.running.includes(request)) break;
      this.#compute(request, tokens);
      budget -= tokens;
    }
    while (!preempted && budget > 0 && this.running.length < maxNumSeqs && this.waiting.length > 0) {
      const request = this.waiting[0] as NaiveRequest;
      const reused = this.#reusable(request);
      const shared = reused.filter(({ holders }) => holders > 0).length;
      const promised = this.running.reduce(
        (sum, one) => sum + Math.max(0, this.#blocksOf(one.prefillEnd) - one.blocks.length),
        0,
      );
      const free = this.#options.numGpuBlocks - this.active - promised;
      if (this.#blocksOf(request.tokens.length) - shared > free) break;
      const rest = request.tokens.length - reused.length * blockSize;
      if (!enableChunkedPrefill && rest > budget) break;
      this.waiting.shift();
      this.running.push(request);
      for (const block of reused) block.holders++;
      request.blocks = reused;
      request.computed = reused.length * blockSize;
      request.prefillEnd = request.tokens.length;
      const tokens = Math.min(rest, budget);
      if (!this.#take(request, request.computed + tokens)) throw new Error("What was promised is not there.");
      this.#compute(request, tokens);
      budget -= tokens;
    }
    return this.pass.map(({ request, tokens }) => [request.id, tokens]);
  }

  /** Gives the ids of those that got a token, and of those that ended. */
  finish(): { got: number[]; ended: number[] } {
    const got: number[] = [];
    const ended: number[] = [];
    for (const { request } of this.pass) {
      let isOver = request.isAborted;
      if (!isOver && request.computed === request.tokens.length) {
        request.tokens.push(this.#nextToken(request));
        got.push(request.id);
        const { numGpuBlocks, blockSize, enableChunkedPrefill, maxNumBatchedTokens } = this.#options;
        const most = Math.min(numGpuBlocks * blockSize, enableChunkedPrefill ? Infinity : maxNumBatchedTokens);
        isOver = request.tokens.length - request.promptLength >= request.maxTokens || request.tokens.length >= most;
      }
      if (!isOver) continue;
      ended.push(request.id);
      this.#leave(request);
    }
    this.pass = [];
    return { got, ended };
  }

  #blocksOf(tokens: number): number {
    return Math.ceil(tokens / this.#options.blockSize);
  }

  #contentOf(request: NaiveRequest, block: number): string {
    return request.tokens.slice(0, (block + 1) * this.#options.blockSize).join(" ");
  }

  #reusable(request: NaiveRequest): Block[] {
    const found: Block[] = [];
    for (let at = 0; (at + 1) * this.#options.blockSize < request.tokens.length; at++) {
      const content = this.#contentOf(request, at);
      const copies = this.#blocks.filter((block) => block.content === content);
      if (copies.length === 0) break;
      found.push(copies.reduce((oldest, copy) => (copy.cachedAt < oldest.cachedAt ? copy : oldest)));
    }
    return found;
  }

  /** Gives a request blocks up to so many tokens, at the cost of those that nobody holds, the longest unheld first. */
  #take(request: NaiveRequest, tokens: number): boolean {
    const wanted = Math.max(0, this.#blocksOf(tokens) - request.blocks.length);
    if (wanted > this.#options.numGpuBlocks - this.active) return false;
    while (this.#blocks.length + wanted > this.#options.numGpuBlocks) {
      const idle = this.#blocks.filter(({ holders }) => holders === 0);
      const victim = idle.reduce((first, block) => (block.leftAt < first.leftAt ? block : first));
      this.#blocks = this.#blocks.filter((block) => block !== victim);
    }
    for (let count = 0; count < wanted; count++) {
      const block: Block = { content: null, holders: 1, cachedAt: 0, leftAt: 0 };
      this.#blocks.push(block);
      request.blocks.push(block);
    }
    return true;
  }

  #compute(request: NaiveRequest, tokens: number): void {
    this.pass.push({ request, tokens });
    request.computed += tokens;
    if (!this.#options.enablePrefixCaching) return;
    for (const [at, block] of request.blocks.entries()) {
      if ((at + 1) * this.#options.blockSize > request.computed || block.content !== null) continue;
      block.content = this.#contentOf(request, at);
      block.cachedAt = ++this.#time;
    }
  }

  #leave(request: NaiveRequest): void {
    this.running = this.running.filter((one) => one !== request);
    for (const block of [...request.blocks].reverse()) {
      block.holders--;
      block.leftAt = ++this.#time;
    }
    this.#blocks = this.#blocks.filter(({ holders, content }) => holders > 0 || content !== null);
    request.blocks = [];
    request.computed = 0;
    request.prefillEnd = 0;
  }
}
