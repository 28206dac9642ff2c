import { batchLaws } from "./batches.js";
import { copyLaws } from "./copies.js";
import { evictionLaws } from "./eviction.js";
import { holdingLaws } from "./holding.js";
import { idLaws } from "./ids.js";
import type { Law } from "./law.js";
import { reservationLaws } from "./reservations.js";

/** The laws of the pool, by what they are about. */
export const laws: Readonly<Record<string, readonly Law[]>> = {
  reservations: reservationLaws,
  "pins and references": holdingLaws,
  "order of eviction": evictionLaws,
  "copies of a hash": copyLaws,
  "ids of copies": idLaws,
  batches: batchLaws,
};
