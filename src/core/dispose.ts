// Node 20 has no Symbol.dispose of its own; where a program installs one later, both sides meet at the registered name.
const native = (Symbol as { dispose?: symbol }).dispose;

/** The key of `using`: `Symbol.dispose`, or its registered stand-in. */
export const DISPOSE: typeof Symbol.dispose = (native ?? Symbol.for("Symbol.dispose")) as typeof Symbol.dispose;
