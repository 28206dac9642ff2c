import { main, type TimedSuite } from "./harness.js";
import { hashTokensOfKvroute, xxh3OfHashWasm, xxh64OfXxhashWasm } from "./token-hash/contenders.js";
import { PROMPT_TOKENS, TOKEN_BYTES } from "./token-hash/prompts.js";

const bytes = PROMPT_TOKENS * TOKEN_BYTES;

function suite(blockSize: number): TimedSuite {
  return {
    kind: "time",
    title: `Token hashes: ${PROMPT_TOKENS.toLocaleString("en")} tokens in blocks of ${blockSize * TOKEN_BYTES} bytes`,
    operation: `hash a prompt of ${bytes.toLocaleString("en")} bytes, so MB/s are ${bytes.toLocaleString("en")} by the us`,
    rounds: 31,
    contenders: {
      "kvroute hashTokens, local and sequence": () => hashTokensOfKvroute(blockSize),
      "hash-wasm XXH3, local only": () => xxh3OfHashWasm(blockSize),
      "xxhash-wasm XXH64, local only": () => xxh64OfXxhashWasm(blockSize),
    },
  };
}

await main(import.meta.url, [suite(16), suite(256)]);
