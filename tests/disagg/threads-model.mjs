// A language model small enough to know its answers by heart: the next token is a mixture of the prompt, the last token
// and the position. Whatever is mixed up between requests, or out of order, gives other tokens. Plain JavaScript, so that
// threads and processes of their own can load it.

const EOS_TOKEN = -(2n ** 63n);
const MASK = (1n << 62n) - 1n;

function mix(state, value) {
  return ((state ^ value) * 0x9e3779b97f4a7c15n + (state >> 7n)) & MASK;
}

function digest(tokens) {
  return tokens.reduce((state, token) => mix(state, token), 17n);
}

/** The KV cache of a prompt: its length as u32, which is where decoding starts, and a digest of it. */
export function prefill(tokens) {
  const kv = new DataView(new ArrayBuffer(12));
  kv.setUint32(0, tokens.length, true);
  kv.setBigUint64(4, digest(tokens), true);
  return new Uint8Array(kv.buffer);
}

/** The length of a prompt whose answer stops after its first token, until somebody ends it. */
export const HELD = 41;

/** Tells whether a KV cache is of such a prompt, and a position is behind its first token. */
export function isHeld(kv, position) {
  return position > HELD && new DataView(kv.buffer, kv.byteOffset, kv.byteLength).getUint32(0, true) === HELD;
}

/** The next token; one in eight ends the answer. */
export function decodeStep(kv, lastToken, position) {
  const view = new DataView(kv.buffer, kv.byteOffset, kv.byteLength);
  const token = mix(mix(view.getBigUint64(4, true), lastToken), BigInt(position));
  return token % 8n === 0n ? EOS_TOKEN : token;
}

/** The answer that a prompt must have. */
export function answerTo(tokens, maxNewTokens) {
  const kv = prefill(tokens);
  const answer = [];
  for (let lastToken = 0n; answer.length < maxNewTokens; ) {
    lastToken = decodeStep(kv, lastToken, tokens.length + answer.length);
    if (lastToken === EOS_TOKEN) break;
    answer.push(lastToken);
  }
  return answer;
}
