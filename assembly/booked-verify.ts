import { Panic } from "../src/abi";
import { booked, bookedEntry } from "./booked-records";
import * as index from "./prefix-index";
import { newerThan, oldestOf, sentinel } from "./prefix-order";
import { Node, isEntry } from "./prefix-records";
import { hold, verifyRecords } from "./prefix-verify";

/** Walks everything that a table of booked blocks keeps and stops the core where two of its accounts disagree. */
export function verifyBooked(): void {
  verifyRecords();
  let holders: u32 = 0;
  for (let entry = newerThan(sentinel()); isEntry(entry); entry = newerThan(entry)) {
    hold(bookedEntry(entry).references > 0, Panic.References);
    hold(entry.holder.mark == 0, Panic.References); // between calls nothing is counted
    holders += u32(oldestOf(entry.holder) == entry);
    if (entry.node.first == entry) verifyReferences(entry.node);
  }
  hold(holders == index.holders, Panic.Counters); // nobody is known who holds nothing
}

function verifyReferences(node: Node): void {
  let sum: u64 = 0;
  for (let entry = node.first; isEntry(entry); entry = entry.following) sum += bookedEntry(entry).references;
  hold(sum == booked(node).references, Panic.References);
  hold(booked(node).waiting <= sum, Panic.References);
}
