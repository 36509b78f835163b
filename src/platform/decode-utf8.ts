const LINE_FEED = 0x0a;

/**
 * Counts the line breaks before the first byte that is not UTF-8, to name the line of the fault. Each line is decoded
 * alone, because a line break is never part of a longer character.
 */
export function countLinesBeforeFault(bytes: Uint8Array): number {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let start = 0, lines = 0; ; lines++) {
    const end = bytes.indexOf(LINE_FEED, start);
    if (end === -1) return lines;
    try {
      decoder.decode(bytes.subarray(start, end));
    } catch {
      return lines;
    }
    start = end + 1;
  }
}

/**
 * Thrown for a file that is not text in UTF-8. The message completes "the file is …" and repeats nothing of the
 * content.
 */
export class NotUtf8 extends Error {
  override readonly name = "NotUtf8";
}

/**
 * Decodes the text of a file, without a byte order mark. Throws {@link NotUtf8}, because a guess at another encoding
 * would alter the text.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  const [first = 0, second = 0] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || bytes.includes(0))
    throw new NotUtf8("not valid UTF-8 (line 1; perhaps UTF-16)");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new NotUtf8(`not valid UTF-8 (line ${countLinesBeforeFault(bytes) + 1}; perhaps Windows-1252)`);
  }
}
