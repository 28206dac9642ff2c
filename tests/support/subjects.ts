import { BlockPool } from "../../src/core/block-pool.js";
import { NaivePool } from "../model/naive-pool.js";
import type { Subject } from "./pool-under-test.js";
import { verifyPool } from "./verify.js";

/** The real pool, on whichever core the project of the test runner resolves to. */
export const blockPool: Subject<BlockPool> = {
  name: "BlockPool",
  create: (options) => new BlockPool(options),
  verify: verifyPool,
};

/** The reference of the model tests, itself held against the vectors. */
export const naive: Subject<NaivePool> = {
  name: "naive model",
  create: (options) => new NaivePool(options),
  verify: () => {},
};
