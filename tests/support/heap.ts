import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Makes something, and gives the bytes that it keeps alive beside it, on the heap and in buffers. */
export function retained<T>(make: () => T): { made: T; bytes: number } {
  make(); // what only a first time makes, such as compiled code, is not counted
  const before = used();
  const made = make();
  return { made, bytes: used() - before };
}

function used(): number {
  collect();
  collect(); // buffers are let go a collection later
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
