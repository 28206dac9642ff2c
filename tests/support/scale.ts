const { KVROUTE_TEST_SCALE } = process.env;

/** How much of the random and large tests to run: 1 is everything, 0.1 is the quick loop. */
export const scale = KVROUTE_TEST_SCALE === undefined ? 1 : Number(KVROUTE_TEST_SCALE);

if (!(scale > 0)) throw new RangeError(`Expected KVROUTE_TEST_SCALE above 0, got ${KVROUTE_TEST_SCALE}.`);

/** The number of runs at the present scale, at least one. */
export function scaled(runs: number): number {
  return Math.max(1, Math.round(runs * scale));
}
