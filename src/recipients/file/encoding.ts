import { FILE_BYTES_MAX } from "./limits.ts";
import { ServiceError } from "../../platform/service-error.ts";

const SAVE_AS = 'save it again as "CSV UTF-8"';

/** What a zip archive, and so an Excel workbook, begins with. */
const ZIP_MAGIC = [0x50, 0x4b, 0x03, 0x04];

/** First bytes that are looked at for the zeros of UTF-16 without a mark. */
const SNIFF_BYTES = 1024;

/**
 * UTF-8, or UTF-16 where a byte order mark says so (Excel's "Unicode text"). Anything else is refused:
 * a guess at a legacy code page would greet people by a mangled name.
 */
export function decodeText(file: string | Uint8Array): string {
  const bytes = typeof file === "string" ? Buffer.byteLength(file) : file.byteLength;
  if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `the file has more than ${FILE_BYTES_MAX} bytes`);
  const text = typeof file === "string" ? file : decodeBytes(file);
  return text.replace(/^\uFEFF/, "");
}

function decodeBytes(bytes: Uint8Array): string {
  if (ZIP_MAGIC.every((byte, index) => bytes[index] === byte)) {
    throw new ServiceError("invalid", `this is an Excel workbook, not a text file: ${SAVE_AS}`);
  }
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decode(bytes, "utf-16le");
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return decode(bytes, "utf-16be");
  if (bytes.subarray(0, SNIFF_BYTES).includes(0)) {
    throw new ServiceError("invalid", `the file holds zero bytes (UTF-16 without a mark, or no text): ${SAVE_AS}`);
  }
  return decode(bytes, "utf-8");
}

function decode(bytes: Uint8Array, encoding: "utf-8" | "utf-16le" | "utf-16be"): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    const where = encoding === "utf-8" ? ` (line ${lineOfBadByte(bytes)}; perhaps Windows-1252)` : "";
    throw new ServiceError("invalid", `the file is not valid ${encoding.toUpperCase()}${where}: ${SAVE_AS}`);
  }
}

/** A line end is never a part of a longer UTF-8 sequence, so each line can be tried alone. */
function lineOfBadByte(bytes: Uint8Array): number {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 1;
  for (let start = 0; start < bytes.length; line++) {
    const found = bytes.indexOf(0x0a, start);
    const end = found === -1 ? bytes.length : found + 1;
    try {
      decoder.decode(bytes.subarray(start, end));
    } catch {
      return line;
    }
    start = end;
  }
  return line;
}
