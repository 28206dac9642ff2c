// What the replays need of node:util, for runtimes that have no Node: the bundle puts this file in its place.

/** Tells whether two values are equal in everything they hold. */
export function isDeepStrictEqual(first: unknown, second: unknown): boolean {
  if (Object.is(first, second)) return true;
  if (typeof first !== "object" || typeof second !== "object" || first === null || second === null) return false;
  if (Object.getPrototypeOf(first) !== Object.getPrototypeOf(second)) return false;
  const keys = Object.keys(first);
  if (keys.length !== Object.keys(second).length) return false;
  return keys.every(
    (key) => Object.hasOwn(second, key) && isDeepStrictEqual(Reflect.get(first, key), Reflect.get(second, key)),
  );
}

/** Shows a value in a message. */
export function inspect(value: unknown): string {
  return String(
    JSON.stringify(value, (_, part) => {
      if (typeof part === "bigint") return `${part}n`;
      return ArrayBuffer.isView(part) ? Array.from(part as unknown as ArrayLike<unknown>, String) : part;
    }),
  );
}
