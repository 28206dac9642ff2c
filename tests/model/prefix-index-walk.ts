import fc from "fast-check";
import type { WorkerId, WorkerWithDpRank } from "../../src/core/keys.js";
import type { IndexOptions } from "./prefix-index-naive.js";
import { type IndexCall, IndexWorld, type MakeIndex } from "./prefix-index-world.js";

/** What the calls of a walk may name. */
export interface IndexSpace {
  readonly options: fc.Arbitrary<IndexOptions & { maxMemoryBytes?: number }>;
  /** Blocks are the nodes of a binary tree, 1 being a root: so many levels. */
  readonly levels: number;
  /** The hash of a node. */
  readonly hash: (node: number) => bigint;
  /** Whether stores may contradict each other about the parent of a block, and name blocks twice. */
  readonly messy: boolean;
  readonly ids: readonly WorkerId[];
  readonly ranks: number;
}

interface Walk {
  readonly runs: number;
  readonly commandsMax: number;
  readonly seed?: number;
}

/** Makes a call at a time, on an index with a bound for each worker. */
type MakeCall = (now: number, bound: number) => IndexCall;

/** Limits of single workers are up to this, or to the bound of the index where that is less. */
const LIMIT_MAX = 40;

/** A call, and by how much the time has gone on before it. */
interface Step {
  readonly call: MakeCall;
  readonly waitMs: number;
  readonly look: boolean;
}

/**
 * Makes random calls on an index and on the naive one side by side; fails with the shortest sequence that shows a
 * difference.
 */
export function indexWalk(make: MakeIndex, space: IndexSpace, walk: Walk): { evicted: number; limited: number } {
  const seen = { evicted: 0, limited: 0 };
  const steps = fc.array(stepOf(space), { maxLength: walk.commandsMax, size: "max" });
  const property = fc.property(space.options, steps, (options, list) => {
    const world = new IndexWorld(make(options), options, allHashes(space));
    if (!space.messy) {
      world.model.onEvict = (worker, hash) => {
        if (world.model.holdsChild(worker, hash)) throw new Error(`${hash} is evicted before a child.`);
      };
    }
    const bound = Math.min(options.maxEntries ?? LIMIT_MAX, options.maxEntriesPerWorker ?? LIMIT_MAX);
    let now = 0;
    for (const { call, waitMs, look } of list) {
      now = Math.max(0, now + waitMs);
      world.call(call(now, bound));
      if (look) world.compareHolders(now);
    }
    world.compareHolders(now);
    seen.evicted += world.real.stats.evicted;
    seen.limited += world.limited.length;
  });
  fc.assert(property, {
    numRuns: walk.runs,
    ...(walk.seed === undefined ? {} : { seed: walk.seed, endOnFailure: true }),
  });
  return seen;
}

function allHashes(space: IndexSpace): bigint[] {
  return Array.from({ length: 2 ** space.levels - 1 }, (_, index) => space.hash(index + 1));
}

function stepOf(space: IndexSpace): fc.Arbitrary<Step> {
  const wait = fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: -3, max: 30 }));
  return fc.record({ call: callOf(space), waitMs: wait, look: fc.boolean() });
}

function callOf(space: IndexSpace): fc.Arbitrary<MakeCall> {
  const most = fc.integer({ min: 1, max: LIMIT_MAX });
  const worker = fc.record({ workerId: fc.constantFrom(...space.ids), dpRank: fc.nat(space.ranks - 1) });
  const node = fc.integer({ min: 1, max: 2 ** space.levels - 1 });
  const path = fc.tuple(node, fc.nat(space.levels)).map(([leaf, skip]) => pathTo(leaf, skip));
  const mess = fc.record({ nodes: fc.array(node, { maxLength: 6 }), parent: fc.option(node, { nil: undefined }) });
  const chain = (space.messy ? fc.oneof(path, mess) : path).map(({ nodes, parent }) => ({
    hashes: nodes.map(space.hash),
    parent: parent === undefined ? undefined : space.hash(parent),
  }));
  const some = fc.array(node, { maxLength: 4 }).map((nodes) => nodes.map(space.hash));
  const typed = fc.boolean();
  return fc.oneof(
    { weight: 12, arbitrary: fc.tuple(worker, chain, typed).map((args) => (now: number) => store(...args, now)) },
    { weight: 3, arbitrary: fc.tuple(worker, some, typed).map((args) => () => remove(...args)) },
    { weight: 4, arbitrary: fc.tuple(chain, typed).map((args) => (now: number) => overlap(...args, now)) },
    {
      weight: 1,
      arbitrary: fc.tuple(worker, most).map(
        ([who, n]): MakeCall =>
          (_, bound) =>
            limit(who, Math.min(n, bound)),
      ),
    },
    { weight: 1, arbitrary: worker.map((who) => () => clear(who)) },
    { weight: 1, arbitrary: fc.constantFrom(...space.ids).map((id) => () => removeWorker(id)) },
  );
}

/** The way from a root to a node, without its first `skip` nodes, and the node before those that are left. */
export function pathTo(leaf: number, skip: number): { nodes: number[]; parent: number | undefined } {
  const nodes: number[] = [];
  for (let node = leaf; node > 0; node >>= 1) nodes.unshift(node);
  const from = Math.min(skip, nodes.length - 1);
  return { nodes: nodes.slice(from), parent: nodes[from - 1] };
}

interface Chain {
  readonly hashes: readonly bigint[];
  readonly parent: bigint | undefined;
}

const list = (hashes: readonly bigint[], typed: boolean) => (typed ? BigUint64Array.from(hashes) : hashes);
const name = ({ workerId, dpRank }: WorkerWithDpRank) => `${typeof workerId} ${workerId}/${dpRank}`;

function store(worker: WorkerWithDpRank, { hashes, parent }: Chain, typed: boolean, nowMs: number): IndexCall {
  const options = parent === undefined ? { nowMs } : { nowMs, parent };
  return {
    text: `store(${name(worker)}, [${hashes}], parent ${parent}, at ${nowMs})`,
    act: (index) => index.store(worker, list(hashes, typed), options),
  };
}

function remove(worker: WorkerWithDpRank, hashes: readonly bigint[], typed: boolean): IndexCall {
  return { text: `remove(${name(worker)}, [${hashes}])`, act: (index) => index.remove(worker, list(hashes, typed)) };
}

function overlap({ hashes }: Chain, typed: boolean, nowMs: number): IndexCall {
  return { text: `overlap([${hashes}], ${nowMs})`, act: (index) => index.overlap(list(hashes, typed), nowMs) };
}

function limit(worker: WorkerWithDpRank, most: number): IndexCall {
  return { text: `limit(${name(worker)}, ${most})`, act: (index) => index.limit(worker, most) };
}

function clear(worker: WorkerWithDpRank): IndexCall {
  return { text: `clear(${name(worker)})`, act: (index) => index.clear(worker) };
}

function removeWorker(id: WorkerId): IndexCall {
  return { text: `removeWorker(${typeof id} ${id})`, act: (index) => index.removeWorker(id) };
}
