const LINE_FEED = 0x0a;

/**
 * Line breaks before the first byte that is not UTF-8: one is never a part of a longer character, so each line is tried
 * alone.
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
