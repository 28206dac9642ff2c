import { mix } from "../../sim/engine.js";
import { type Dialect, usageOf, type Wish } from "../dialect.js";
import { type Body, readCount, readInputs } from "../fields.js";
import { badRequest } from "../http-error.js";
import { encodeText } from "../tokenizer.js";

const DIMENSIONS_DEFAULT = 8;
const DIMENSIONS_MAX = 8_192;

/** Embeddings of OpenAI: the prompts are computed and nothing is generated. */
export const embeddings: Dialect = {
  idPrefix: "embd-",
  read: (body): Wish => {
    dimensionsOf(body);
    return { prompts: readInputs(body, "input", encodeText), maxTokens: 0 };
  },
  whole(reply) {
    const { body, id, created, model } = reply;
    const inputs = readInputs(body, "input", encodeText);
    const isBase64 = body["encoding_format"] === "base64";
    const data = inputs.map((tokens, index) => {
      const vector = vectorOf(tokens, dimensionsOf(body));
      return { object: "embedding", index, embedding: isBase64 ? base64(vector) : [...vector] };
    });
    return { id, object: "list", created, model, data, usage: usageOf(reply) };
  },
};

function dimensionsOf(body: Body): number {
  const dimensions = readCount(body, "dimensions", 1) ?? DIMENSIONS_DEFAULT;
  if (dimensions <= DIMENSIONS_MAX) return dimensions;
  throw badRequest(`Expected dimensions to be at most ${DIMENSIONS_MAX}, got ${dimensions}.`);
}

/** Makes a vector of length 1 up, which hangs on the tokens alone. */
function vectorOf(tokens: Uint32Array, dimensions: number): Float32Array {
  const seed = tokens.reduce((bits, token, at) => Math.imul(bits ^ token, 0x9e37_79b1) ^ mix(BigInt(token), at), 0);
  const raw = Float64Array.from({ length: dimensions }, (_, at) => mix(BigInt(seed >>> 0), at) / 2 ** 31 - 1);
  const length = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0)) || 1;
  return Float32Array.from(raw, (x) => x / length);
}

function base64(vector: Float32Array): string {
  const view = new DataView(new ArrayBuffer(4 * vector.length));
  for (const [at, x] of vector.entries()) view.setFloat32(4 * at, x, true);
  return btoa(Array.from(new Uint8Array(view.buffer), (byte) => String.fromCharCode(byte)).join(""));
}
