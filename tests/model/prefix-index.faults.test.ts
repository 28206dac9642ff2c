import { describe, expect, test } from "vitest";
import { PAGE_BYTES } from "../../src/abi.js";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { failIndexGrowth, type IndexCall, IndexWorld } from "./prefix-index-world.js";

const worker = (workerId: number) => ({ workerId, dpRank: 0 });
const chain = (from: number, length: number) => BigUint64Array.from({ length }, (_, i) => BigInt(from + i));
const HASHES = [...chain(0, 3)];
const WORKERS = 700;

// Grows the records by many blocks and by many workers, the page by a long batch and by a long answer.
const scenario: readonly IndexCall[] = [
  ...Array.from({ length: WORKERS }, (_, id) => store(id, 0, 2)),
  ...Array.from({ length: 12 }, (_, i) => store(i, 1_000 * (i + 1), 500)),
  { text: "overlap of the blocks of all", act: (index) => index.overlap(chain(0, 2)) },
  limit(WORKERS, 4),
  store(1, 1_000, 600),
  { text: "overlap of a long chain", act: (index) => index.overlap(chain(1_000, 3_000)) },
];

function store(id: number, from: number, length: number): IndexCall {
  return {
    text: `store(${id}, ${length} from ${from})`,
    act: (index) => index.store(worker(id), chain(from, length)),
  };
}

function limit(id: number, most: number): IndexCall {
  return { text: `limit(${id}, ${most})`, act: (index) => index.limit(worker(id), most) };
}

/** Plays the scenario, within so many bytes or with the k-th growth refused. */
function play(maxMemoryBytes: number | undefined, k = 0): { limited: readonly string[]; pages: number } {
  const index = new PrefixIndex(maxMemoryBytes === undefined ? {} : { maxMemoryBytes });
  const world = new IndexWorld(index, {}, HASHES);
  failIndexGrowth(index, k);
  for (const call of scenario) {
    const before = world.limited.length;
    world.call(call);
    if (world.limited.length === before) continue;
    world.call(call);
    expect(world.limited.length - before).toBe(k > 0 ? 1 : 2); // a growth is refused once, a limit stands
  }
  const settled = world.limited.length;
  for (const call of shrinking) world.call(call);
  expect(world.limited).toHaveLength(settled); // what makes room needs none
  expect(index.size.entries).toBe(0);
  return { limited: world.limited, pages: index.memoryBytes / PAGE_BYTES };
}

const shrinking: readonly IndexCall[] = [
  { text: "remove a long list", act: (index) => index.remove(worker(1), [...chain(1_000, 2_900)]) },
  { text: "remove a long array", act: (index) => index.remove(worker(2), chain(3_000, 2_900)) },
  { text: "clear", act: (index) => index.clear(worker(3)) },
  ...Array.from({ length: WORKERS }, (_, id) => ({
    text: `removeWorker(${id})`,
    act: (index: { removeWorker(id: number): void }) => index.removeWorker(id),
  })),
];

describe("a limit of memory refuses single calls, changes nothing and leaves the index usable", () => {
  const enough = play(undefined).pages;

  for (let pages = 1; pages < enough; pages++) {
    test(`of ${pages} pages, where ${enough} would do`, () => {
      const { limited, pages: used } = play(pages * PAGE_BYTES);
      expect(limited).not.toEqual([]);
      expect(used).toBeLessThanOrEqual(pages);
    });
  }

  test(`of ${enough} pages refuses nothing`, () => {
    expect(play(enough * PAGE_BYTES).limited).toEqual([]);
  });
});

test("a store of what is known asks for no memory where there is none, and one of new blocks for theirs alone", () => {
  const index = new PrefixIndex({ maxMemoryBytes: 2 * PAGE_BYTES });
  const refused = expect.objectContaining({ code: "KVROUTE_MEMORY_LIMIT" });
  index.store(worker(0), chain(0, 100));
  const fill = () => {
    for (let hash = 1_000; ; hash++) index.store(worker(1), chain(hash, 1));
  };
  expect(fill).toThrow(refused);
  index.remove(worker(0), chain(98, 2)); // four records
  index.store(worker(0), chain(0, 98));
  index.store(worker(0), chain(0, 99));
  index.store(worker(0), chain(99, 1), { parent: 98n });
  const { size } = index;
  index.store(worker(0), chain(0, 100));
  index.store(worker(0), chain(50, 50), { parent: 49n });
  expect(() => index.store(worker(2), chain(0, 100))).toThrow(refused);
  expect(() => index.store(worker(0), chain(99, 2), { parent: 98n })).toThrow(refused);
  expect(index.size).toEqual(size);
  expect(index.overlap(chain(0, 100))).toEqual([{ worker: worker(0), blocks: 100 }]);
});

test("a growth that the runtime refuses changes nothing, and the next one is granted", () => {
  const checked = failIndexGrowth(new PrefixIndex(), 0);
  let k = 1;
  while (play(undefined, k).limited.length > 0) k++;
  const growths = k - 1;
  if (checked) expect(growths).toBeGreaterThanOrEqual(4);
  else expect(growths).toBe(0); // the shipped core has no way to let memory fail
});
