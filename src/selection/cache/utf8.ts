/** Counts the bytes of a text in UTF-8; a lone surrogate counts as the three bytes of U+FFFD, which would replace it. */
export function utf8Length(text: string): number {
  const units = text.length;
  let bytes = units;
  for (let at = 0; at < units; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A pair takes four bytes: its two units, and the two that were just added.
    if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(at + 1))) at++;
  }
  return bytes;
}

/** NaN, the unit after the last, is none. */
function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}
