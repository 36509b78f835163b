import { ServiceError } from "../../platform/service-error.ts";
import { countLinesBeforeFault } from "../../platform/decode-utf8.ts";
import { FILE_BYTES_MAX } from "./format.ts";

const SAVE_AS = 'save it again as "CSV UTF-8"';

/** First bytes of files that spreadsheet programs and others write, whatever the file is called. */
const MAGIC: readonly (readonly [name: string, bytes: readonly number[]])[] = [
  ["an Excel workbook", [0x50, 0x4b, 0x03, 0x04]],
  ["an Excel workbook of the old kind (.xls)", [0xd0, 0xcf, 0x11, 0xe0]],
  ["a PDF", [0x25, 0x50, 0x44, 0x46]],
  ["a compressed file", [0x1f, 0x8b]],
];

/** First bytes that are looked at for the zeros of UTF-16 without a mark. */
const SNIFF_BYTES = 1024;

/** A web page: an export of a program as a table, or the page that asks to sign in. */
const HTML = /^\s*<(?:!doctype|html|head|body|meta|title|style|script|table|div|!--)/i;
const XML = /^\s*<\?xml/i;

/**
 * UTF-8, or UTF-16 where a byte order mark says so (Excel's "Unicode text"). Anything else is refused:
 * a guess at a legacy code page would greet people by a mangled name.
 */
export function decodeText(file: string | Uint8Array): string {
  const bytes = typeof file === "string" ? Buffer.byteLength(file) : file.byteLength;
  if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `the file has more than ${FILE_BYTES_MAX} bytes`);
  const text = (typeof file === "string" ? file : decodeBytes(file)).replace(/^\uFEFF/, "");
  const markup = HTML.test(text) ? "a web page (HTML)" : XML.test(text) ? "XML" : undefined;
  if (markup === undefined) return text;
  throw new ServiceError(
    "invalid",
    `this is ${markup}, whatever its name says: open it in a spreadsheet, and ${SAVE_AS}`,
  );
}

function decodeBytes(bytes: Uint8Array): string {
  const [magic] = MAGIC.find(([, first]) => first.every((byte, index) => bytes[index] === byte)) ?? [];
  if (magic !== undefined) throw new ServiceError("invalid", `this is ${magic}, not a text file: ${SAVE_AS}`);
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
    const where = encoding === "utf-8" ? ` (line ${countLinesBeforeFault(bytes) + 1}; perhaps Windows-1252)` : "";
    throw new ServiceError("invalid", `the file is not valid ${encoding.toUpperCase()}${where}: ${SAVE_AS}`);
  }
}
