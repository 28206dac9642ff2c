import * as layout from "../assembly/layout";
import * as index from "../assembly/prefix-index";
import { sentinel } from "../assembly/prefix-order";
import * as arena from "../assembly/prefix-records";
import { Entry, Node, holderAt, noEntry } from "../assembly/prefix-records";
import * as tables from "../assembly/prefix-tables";
import { removeBlocks } from "../assembly/prefix-batch";
import { verifyIndex } from "../assembly/prefix-verify";
import { Panic } from "../src/abi";
import { expectFound, openIndex, putHash, storeAll } from "./prefix-support";

// Each test breaks one thing in a sound index, sees that `verifyIndex` finds it, and mends it.

let one: i32 = 0;
let node: Node = changetype<Node>(0);
let entry: Entry = noEntry();

describe("verifyIndex", () => {
  beforeAll(() => {
    openIndex(100, 50);
    one = storeAll(0, [1, 2, 3]);
    storeAll(0, [1, 2]);
    storeAll(0, [1, 9]);
    putHash(0, 9);
    removeBlocks(one + 7, 0);
    node = tables.findNode(1);
    entry = tables.findEntry(node, holderAt(<u32>one));
    storeAll(<u32>one, [7, 8]);
    putHash(0, 8);
    removeBlocks(<u32>one, 1);
  });

  afterEach(() => {
    verifyIndex();
  });

  it("a sound index passes", () => {
    expect(node.count).toBe(3);
    expect(arena.recycled).toBe(2);
  });

  it("layout: the scratch page lies behind the tables", () => {
    layout.scratch += 64;
    expectFound(Panic.Layout);
    layout.scratch -= 64;
    const words = layout.words;
    layout.words = 1 << 29;
    expectFound(Panic.Layout);
    layout.words = words;
  });

  it("records: none is lost, and the free ones are those that were used", () => {
    arena.untouched++;
    expectFound(Panic.Counters);
    arena.untouched--;
    arena.recycled--;
    arena.untouched--;
    expectFound(Panic.Records);
    arena.recycled++;
    arena.untouched++;
    const freed = arena.freed;
    arena.freed += 4;
    expectFound(Panic.Records);
    arena.freed = 0;
    expectFound(Panic.Records);
    arena.freed = freed;
  });

  it("holders: as many as registered", () => {
    index.holders++;
    expectFound(Panic.Counters);
    index.holders--;
    const holder = holderAt(<u32>one);
    holder.entries++;
    expectFound(Panic.Counters);
    holder.entries -= 2;
    expectFound(Panic.Order);
    holder.entries++;
    index.ownMax = 2;
    expectFound(Panic.Counters);
    index.ownMax = 50;
    holder.limit = 3;
    expectFound(Panic.Counters);
    holder.limit = 51;
    expectFound(Panic.Counters);
    holder.limit = 50;
    index.entriesMax = 3;
    expectFound(Panic.Counters);
    index.entriesMax = 100;
  });

  it("order: stamps never fall, and none is of the future", () => {
    const stamp = entry.stamp;
    entry.stamp = index.clock + 1;
    expectFound(Panic.Order);
    entry.stamp = -1;
    expectFound(Panic.Order);
    entry.stamp = stamp;
    const newest = sentinel().older;
    const last = newest.stamp;
    newest.stamp = 0;
    expectFound(Panic.Order);
    newest.stamp = last;
  });

  it("order: neighbours agree", () => {
    const older = entry.older;
    entry.older = entry;
    expectFound(Panic.Order);
    entry.older = older;
    const olderOwn = entry.olderOwn;
    entry.olderOwn = entry;
    expectFound(Panic.Order);
    entry.olderOwn = olderOwn;
    const last = sentinel().older;
    sentinel().older = entry;
    expectFound(Panic.Order);
    sentinel().older = last;
    const holder = holderAt(<u32>one);
    const newest = holder.newestOwn;
    holder.newestOwn = entry;
    expectFound(Panic.Order);
    holder.newestOwn = newest;
  });

  it("tables: every key leads to its record", () => {
    node.hash = 77;
    expectFound(Panic.Tables);
    node.hash = 1;
    tables.removeEntry(entry);
    tables.entries++;
    expectFound(Panic.Tables);
    tables.entries--;
    tables.addEntry(entry);
  });

  it("nodes: count, signature and links are those of the entries", () => {
    node.count++;
    expectFound(Panic.Owners);
    node.count -= 2;
    expectFound(Panic.Owners);
    node.count++;
    node.signature++;
    expectFound(Panic.Owners);
    node.signature--;
    const previous = node.first.following.previous;
    node.first.following.previous = noEntry();
    expectFound(Panic.Owners);
    node.first.following.previous = previous;
  });
});
