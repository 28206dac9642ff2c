import { add, distanceIn, emptyTable, lookUp, passesIn, tableBytes, takeOut } from "./hash-table";
import { Entry, Holder, Node } from "./prefix-records";

// The two tables of the index: from a hash to its node, and from a node and a holder to their entry.

let nodeTable: usize = 0;
let nodeMask: usize = 0;
let entryTable: usize = 0;
let entryMask: usize = 0;

/** How many blocks somebody holds. */
export let nodes: u32 = 0;
/** How many (block, holder) pairs there are. */
export let entries: u32 = 0;

// Nearly every record may be an entry, where many hold the same blocks; at most every other one is a node.

/** The bytes that the tables for an arena of so many records take. */
export function tablesBytes(records: u32): usize {
  return tableBytes(records) + tableBytes(records >> 1);
}

/** Empties the tables, at an address aligned to a cache line. */
export function placeTables(address: usize, records: u32): void {
  const bytes = tableBytes(records);
  entryTable = address;
  entryMask = emptyTable(address, bytes);
  nodeTable = address + bytes;
  nodeMask = emptyTable(nodeTable, tableBytes(records >> 1));
  nodes = 0;
  entries = 0;
}

// One copy of the code for both tables.
function find(table: usize, mask: usize, key: u64): usize {
  return lookUp(table, mask, key);
}

/** The node of a hash, or null. */
@inline export function findNode(hash: u64): Node {
  return changetype<Node>(find(nodeTable, nodeMask, hash));
}

/** Does as `findNode`, for the one loop in which a call a block would be felt. */
@inline export function findNodeInline(hash: u64): Node {
  return changetype<Node>(lookUp(nodeTable, nodeMask, hash));
}

/** The entry of a node and a holder, or null. Most blocks have one owner, who is asked first: no table need be read then. */
export function findEntry(node: Node, holder: Holder): Entry {
  const first = node.first;
  if (first.holder == holder) return first;
  if (node.count == 1) return changetype<Entry>(0);
  const key = (<u64>changetype<usize>(node) << 32) | <u64>changetype<usize>(holder);
  return changetype<Entry>(find(entryTable, entryMask, key));
}

/** Adds a node whose hash has none. */
export function addNode(node: Node): void {
  add(nodeTable, nodeMask, changetype<usize>(node));
  nodes++;
}

/** Adds an entry whose node and holder have none. */
export function addEntry(entry: Entry): void {
  add(entryTable, entryMask, changetype<usize>(entry));
  entries++;
}

// One copy of the code for both tables.
function remove(table: usize, mask: usize, record: usize): void {
  takeOut(table, mask, record);
}

/** Takes a node out. */
export function removeNode(node: Node): void {
  remove(nodeTable, nodeMask, changetype<usize>(node));
  nodes--;
}

/** Takes an entry out. */
export function removeEntry(entry: Entry): void {
  remove(entryTable, entryMask, changetype<usize>(entry));
  entries--;
}

/** The sum of the passes of both tables, for `verify`. */
export function passes(): u32 {
  return passesIn(nodeTable, nodeMask) + passesIn(entryTable, entryMask);
}

/** How far a node stands from its first choice, for `verify`. */
export function nodeDistance(node: Node): u32 {
  return distanceIn(nodeTable, nodeMask, changetype<usize>(node));
}

/** How far an entry stands from its first choice, for `verify`. */
export function entryDistance(entry: Entry): u32 {
  return distanceIn(entryTable, entryMask, changetype<usize>(entry));
}
