import { Entry, isEntry, noEntry } from "./prefix-records";

// The entries of a node. Nobody else writes their links, or the count and the signature of a node.

/** Adds an entry to those of its node. */
export function link(entry: Entry): void {
  const node = entry.node;
  const first = node.first;
  entry.previous = noEntry();
  entry.following = first;
  if (isEntry(first)) first.previous = entry;
  node.first = entry;
  node.count++;
  node.signature += entry.holder.word;
}

/** Takes an entry out of those of its node. */
export function unlink(entry: Entry): void {
  const node = entry.node;
  const previous = entry.previous;
  const following = entry.following;
  assert(node.count > 0 && (isEntry(previous) ? previous.following == entry : node.first == entry)); // it is there
  if (isEntry(previous)) previous.following = following;
  else node.first = following;
  if (isEntry(following)) following.previous = previous;
  node.count--;
  node.signature -= entry.holder.word;
}
