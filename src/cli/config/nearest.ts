import { closest } from "fastest-levenshtein";

/** Finds the known name that is most like another, however both write their words: `max-in-flight`, `maxInFlight`. */
export function nearest(name: string, known: readonly string[]): string {
  const plain = new Map(known.map((one) => [plainOf(one), one]));
  return plain.get(closest(plainOf(name), [...plain.keys()])) as string;
}

function plainOf(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).toLowerCase().replace(/[-_.]/g, "");
}

/** A name is compared by its first characters: comparing takes time in the square of them. */
const NAME_LENGTH_MAX = 100;
