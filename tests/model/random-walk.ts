import fc from "fast-check";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import type { Space } from "./choices.js";
import { poolCommands } from "./commands.js";
import { World } from "./world.js";

export interface Walk {
  readonly space: Space;
  readonly runs: number;
  readonly commandsMax: number;
  /** Bytes of memory that a pool may take. Where given, pools may meet limits, which must change nothing. */
  readonly memory?: fc.Arbitrary<number>;
  /** Calls beside those of the public interface, such as faults. */
  readonly extra?: readonly fc.Arbitrary<fc.Command<World, PoolUnderTest>>[];
  /** Whether to look for the shortest sequence once one has failed; by default it does. */
  readonly shrink?: boolean;
  /** What a failure printed, to reproduce it. */
  readonly replay?: { readonly seed: number; readonly path?: string; readonly replayPath?: string };
}

/**
 * Makes random calls on a pool and on the naive one side by side; fails with the shortest sequence that shows a difference.
 *
 * @returns how many calls met a limit
 */
export function randomWalk<P extends PoolUnderTest>(subject: Subject<P>, walk: Walk): number {
  const { space, runs, commandsMax, memory, extra = [], shrink = true, replay = {} } = walk;
  const verbs = fc.commands([poolCommands(space, memory !== undefined), ...extra], {
    maxCommands: commandsMax,
    size: "max",
    ...replay,
  });
  const limits = memory?.map((maxMemoryBytes) => ({ maxMemoryBytes, limitsAllowed: true })) ?? fc.constant({});
  let limited = 0;
  const property = fc.property(space.capacity, limits, verbs, (capacity, options, commands) => {
    const world = new World(subject, { capacity, ...options });
    fc.modelRun(() => ({ model: world as unknown as World, real: world.real.pool as PoolUnderTest }), commands);
    world.compareAll();
    limited += world.limited.length;
  });
  fc.assert(property, { numRuns: runs, endOnFailure: !shrink, ...replay });
  return limited;
}
