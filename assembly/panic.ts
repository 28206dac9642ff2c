import { Panic } from "../src/abi";

// What stopped the core. A trap cannot carry a value, so the reason waits here until the facade asks for it.
let code: i32 = Panic.None;
let file: usize = 0;
let line: i32 = 0;

/** Stops the core for good and leaves the reason behind. */
export function panic(reason: Panic): void {
  code = reason;
  unreachable();
}

/** Receives failed assertions in place of the import that the compiler would otherwise ask for. */
export function abort(_message: usize, inFile: usize, atLine: u32, _column: u32): void {
  file = inFile;
  line = <i32>atLine;
  panic(Panic.Assertion);
}

/** Reads why the core stopped, or `Panic.None`. */
export function panicCode(): i32 {
  return code;
}

/** Reads the address of the file name of the failed assertion (an AssemblyScript string), or 0. */
export function panicFile(): usize {
  return file;
}

/** Reads the source line of the failed assertion, or 0. */
export function panicLine(): i32 {
  return line;
}
