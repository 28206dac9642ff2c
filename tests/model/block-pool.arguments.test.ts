import { expect, test } from "vitest";
import {
  AlreadyCachedError,
  ArgumentRangeError,
  ArgumentTypeError,
  CapacityError,
  DuplicateCopyError,
  ForeignReservationError,
  MissingPrefixError,
  NotReferencedError,
  ReservationExhaustedError,
  UnknownCopyError,
} from "../../src/errors.js";
import { create, type Refusal, refusals, wrong } from "./refusals.js";

const badCapacities = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 24, "8", 8n, null, undefined];

refusals(
  "capacities",
  badCapacities.map((capacity): Refusal => {
    const message = new RegExp(`from 1 to 16777215 blocks, got (the \\w+ )?"?${String(capacity)}"?\\.$`);
    return [`${typeof capacity} ${capacity}`, () => create({ capacity }), CapacityError, message];
  }),
);

test("the smallest and the largest capacity are good", () => {
  for (const capacity of [1, 2 ** 24 - 1]) expect(create({ capacity }).capacity).toBe(capacity);
});

refusals("limits of memory", [
  ["0", () => create({ capacity: 1, maxMemoryBytes: 0 }), ArgumentRangeError, /at least 65536 .*got 0\.$/],
  ["-1", () => create({ capacity: 1, maxMemoryBytes: -1 }), ArgumentRangeError, /at least 65536 .*got -1\.$/],
  ["NaN", () => create({ capacity: 1, maxMemoryBytes: Number.NaN }), ArgumentRangeError, /65536 .*got NaN\.$/],
  ["65535", () => create({ capacity: 1, maxMemoryBytes: 65_535 }), ArgumentRangeError, /65536 .*got 65535\.$/],
  ["a string", () => create({ capacity: 1, maxMemoryBytes: "1" }), ArgumentTypeError, /number, got .*"1"\.$/],
]);

const badCounts = [
  [-1, ArgumentRangeError, /0 or more, got -1\.$/],
  [0.5, ArgumentRangeError, /whole number .*got 0\.5\.$/],
  [Number.NaN, ArgumentRangeError, /whole number .*got NaN\.$/],
  [Number.POSITIVE_INFINITY, ArgumentRangeError, /whole number .*got Infinity\.$/],
  ["1", ArgumentTypeError, /number of blocks, got .*"1"\.$/],
  [1n, ArgumentTypeError, /number of blocks, got .*1\.$/],
  [undefined, ArgumentTypeError, /number of blocks, got undefined\.$/],
] as const;

refusals(
  "counts of blocks",
  badCounts.flatMap(([value, error, message]): Refusal[] => {
    const count: number = wrong(value);
    return [
      [`reserve, ${typeof value} ${value}`, ({ pool }) => pool.reserve([], count), error, message],
      [`total, ${typeof value} ${value}`, ({ pool }) => pool.reserveResidentPrefix([], count), error, message],
    ];
  }),
);

const badHashes = [
  [-1n, ArgumentRangeError, "from 0 to 18446744073709551615, got -1"],
  [1n << 64n, ArgumentRangeError, "from 0 to 18446744073709551615, got 18446744073709551616"],
  [7, ArgumentTypeError, "a bigint, .*got the number 7"],
  ["7", ArgumentTypeError, 'a bigint, .*got the string "7"'],
  [null, ArgumentTypeError, "a bigint, .*got null"],
  [undefined, ArgumentTypeError, "a bigint, .*got undefined"],
] as const;

refusals(
  "hashes one by one",
  badHashes.flatMap(([value, error, sentence]): Refusal[] => {
    const message = new RegExp(`^Expected hash to be ${sentence}\\.$`);
    const hash: bigint = wrong(value);
    const name = `${typeof value} ${value}`;
    return [
      [`prefixHit, ${name}`, ({ pool }) => pool.prefixHit(hash), error, message],
      [`allocateCached, ${name}`, ({ pool, reservation }) => pool.allocateCached(reservation, hash), error, message],
      [`cachePrivate, ${name}`, ({ pool, own }) => pool.cachePrivate(own, hash), error, message],
    ];
  }),
);

refusals(
  "hashes in lists, with their index",
  badHashes.flatMap(([value, error, sentence]): Refusal[] => {
    const message = new RegExp(`^Expected \\w+\\[1\\] to be ${sentence}\\.$`);
    const list: bigint[] = [1n, wrong(value)];
    const name = `${typeof value} ${value}`;
    return [
      [`matchPrefix, ${name}`, ({ pool }) => pool.matchPrefix(list), error, message],
      [`reserve, ${name}`, ({ pool }) => pool.reserve(list, 0), error, message],
      [`reserveResidentPrefix, ${name}`, ({ pool }) => pool.reserveResidentPrefix(list, 2), error, message],
      [
        `allocateAllCached, ${name}`,
        ({ pool, reservation }) => pool.allocateAllCached(reservation, list),
        error,
        message,
      ],
      [`cacheAll, ${name}`, ({ pool, own, other }) => pool.cacheAll([own, other], list), error, message],
    ];
  }),
);

const badIds = [
  ["1", 'got the string "1"'],
  [1n, "got the bigint 1"],
  [null, "got null"],
  [undefined, "got undefined"],
  [{}, "got an object"],
] as const;

refusals(
  "ids that are no numbers",
  badIds.flatMap(([value, sentence]): Refusal[] => {
    const [one, listed] = [
      new RegExp(`^Expected id to be a number, .*${sentence}\\.$`),
      new RegExp(`ids\\[1\\] .*${sentence}\\.$`),
    ];
    const id: number = wrong(value);
    return [
      [`release, ${typeof value} ${value}`, ({ pool }) => pool.release(id), ArgumentTypeError, one],
      [`cachePrivate, ${typeof value} ${value}`, ({ pool }) => pool.cachePrivate(id, 9n), ArgumentTypeError, one],
      [
        `releaseAll, ${typeof value} ${value}`,
        ({ pool, own }) => pool.releaseAll([own, id]),
        ArgumentTypeError,
        listed,
      ],
      [
        `releaseChain, ${typeof value} ${value}`,
        ({ pool, own }) => pool.releaseChain([own, id]),
        ArgumentTypeError,
        listed,
      ],
      [
        `cacheAll, ${typeof value} ${value}`,
        ({ pool, own }) => pool.cacheAll([own, id], [8n, 9n]),
        ArgumentTypeError,
        listed,
      ],
    ];
  }),
);

const noLists = {
  null: null,
  undefined: undefined,
  "a number": 7,
  "a string": "ab",
  "an object": {},
  "a set": new Set([1n]),
};

refusals(
  "lists that are none",
  Object.entries(noLists).flatMap(([name, value]): Refusal[] => {
    const [hashes, ids]: [bigint[], number[]] = [wrong(value), wrong(value)];
    const cases: [string, Refusal[1]][] = [
      ["matchPrefix", ({ pool }) => pool.matchPrefix(hashes)],
      ["reserve", ({ pool }) => pool.reserve(hashes, 0)],
      ["reserveResidentPrefix", ({ pool }) => pool.reserveResidentPrefix(hashes, 2)],
      ["allocateAllCached", ({ pool, reservation }) => pool.allocateAllCached(reservation, hashes)],
      ["cacheAll of ids", ({ pool }) => pool.cacheAll(ids, [1n])],
      ["cacheAll of hashes", ({ pool, own }) => pool.cacheAll([own], hashes)],
      ["releaseAll", ({ pool }) => pool.releaseAll(ids)],
      ["releaseChain", ({ pool }) => pool.releaseChain(ids)],
    ];
    return cases.map(([verb, call]) => [`${verb}, ${name}`, call, ArgumentTypeError, /^Expected .*got/]);
  }),
);

refusals("lengths", [
  [
    "more candidates than blocks",
    ({ pool }) => pool.reserveResidentPrefix([1n, 2n], 1),
    ArgumentRangeError,
    /at most 1 .*got 2\.$/,
  ],
  [
    "fewer hashes than ids",
    ({ pool, own, other }) => pool.cacheAll([own, other], [9n]),
    ArgumentRangeError,
    /1 .*2 |2 .*1 /,
  ],
  ["fewer ids than hashes", ({ pool, own }) => pool.cacheAll([own], [8n, 9n]), ArgumentRangeError, /1 .*2 |2 .*1 /],
  [
    "more hashes than room",
    ({ pool, reservation }) => pool.allocateAllCached(reservation, [7n, 8n, 9n]),
    ReservationExhaustedError,
    /at most 2 blocks.*got 3\.$/,
  ],
]);

const endless = new Array<never>(2 ** 26); // has a length, and no elements that would take memory

refusals("batches beyond all bounds", [
  ["matchPrefix", ({ pool }) => pool.matchPrefix(endless), ArgumentRangeError, /at most 16777216, got 67108864\.$/],
  ["reserve", ({ pool }) => pool.reserve(endless, 0), ArgumentRangeError, /at most 16777216, got 67108864\.$/],
  ["releaseAll", ({ pool }) => pool.releaseAll(endless), ArgumentRangeError, /at most 16777216, got 67108864\.$/],
  ["releaseChain", ({ pool }) => pool.releaseChain(endless), ArgumentRangeError, /at most 16777216, got 67108864\.$/],
  ["cacheAll", ({ pool }) => pool.cacheAll(endless, endless), ArgumentRangeError, /at most 16777216, got \d+\.$/],
]);

refusals("reservations that are none", [
  ["null", ({ pool }) => pool.cancel(wrong(null)), ForeignReservationError, /^Expected/],
  [
    "an object",
    ({ pool }) => pool.activatePrefix(wrong({ length: 1, freshLength: 1 })),
    ForeignReservationError,
    /^Expected/,
  ],
  ["undefined", ({ pool }) => pool.allocateAllPrivate(wrong(undefined)), ForeignReservationError, /^Expected/],
]);

refusals("the sentence and the fields name what was refused", [
  [
    "a missing hash",
    ({ pool }) => pool.reserve([1n, 18_446_744_073_709_551_615n], 0),
    MissingPrefixError,
    /18446744073709551615 at index 1/,
    { code: "KVROUTE_MISSING_PREFIX", hash: 18_446_744_073_709_551_615n, index: 1 },
  ],
  [
    "an unknown copy",
    ({ pool }) => pool.release(1.5),
    UnknownCopyError,
    /1\.5/,
    { code: "KVROUTE_UNKNOWN_COPY", id: 1.5, index: 0 },
  ],
  [
    "an unknown copy in a batch",
    ({ pool, own }) => pool.releaseAll(Float64Array.of(own, 2 ** 60)),
    UnknownCopyError,
    /1152921504606847000 at index 1/,
    { id: 2 ** 60, index: 1 },
  ],
  ["a cached copy", ({ pool, held }) => pool.cacheAll([held], [9n]), AlreadyCachedError, /at index 0/, { index: 0 }],
  [
    "a copy without references",
    ({ pool, free, own }) => pool.releaseChain([own, free]),
    NotReferencedError,
    /at index 1/,
    { index: 1 },
  ],
  [
    "a copy named twice",
    ({ pool, own }) => pool.releaseAll([own, own]),
    DuplicateCopyError,
    /at index 1/,
    { index: 1 },
  ],
]);
