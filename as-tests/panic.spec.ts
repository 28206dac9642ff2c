import { abort, panic, panicCode, panicFile, panicLine } from "../assembly/panic";
import { Panic } from "../src/abi";

// In this build failed assertions go to the test runner, which shows them. As shipped they go to `abort`, which is
// called here as the compiler calls it.

const FILE = "assembly/some-file.ts";

function address(text: string): usize {
  return changetype<usize>(text);
}

describe("panic", () => {
  it("a core that has not stopped has no reason to tell", () => {
    expect(panicCode()).toBe(Panic.None);
    expect(panicFile()).toBe(0);
    expect(panicLine()).toBe(0);
  });

  it("a panic stops the core and leaves its reason behind", () => {
    expect(() => panic(Panic.Copies)).toThrow();
    expect(panicCode()).toBe(Panic.Copies);
    expect(() => panic(Panic.Layout)).toThrow();
    expect(panicCode()).toBe(Panic.Layout);
  });

  it("a panic that is no failed assertion names no line", () => {
    expect(panicFile()).toBe(0);
    expect(panicLine()).toBe(0);
  });

  it("a failed assertion stops the core and names its file and line", () => {
    expect(() => abort(address("a message that nobody reads"), address(FILE), 123, 45)).toThrow();
    expect(panicCode()).toBe(Panic.Assertion);
    expect(panicLine()).toBe(123);
    expect(changetype<string>(panicFile())).toBe(FILE);
  });

  it("a failed assertion without a message stops the core too", () => {
    expect(() => abort(0, address(FILE), 7, 1)).toThrow();
    expect(panicCode()).toBe(Panic.Assertion);
    expect(panicLine()).toBe(7);
  });
});
