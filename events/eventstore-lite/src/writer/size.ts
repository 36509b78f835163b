/** UTF-16 units become at most three UTF-8 bytes each, so that most events need no count of bytes. */
const UTF8_BYTES_PER_CHAR_MAX = 3;

/** Why an event with this JSON is too large; undefined: it is not. */
export function tooLarge(id: string, data: string, meta: string, bytesMax: number): string | undefined {
  if ((data.length + meta.length) * UTF8_BYTES_PER_CHAR_MAX <= bytesMax) return undefined;
  const bytes = Buffer.byteLength(data) + Buffer.byteLength(meta);
  return bytes > bytesMax ? `an event has at most ${bytesMax} bytes, ${id} has ${bytes}` : undefined;
}
