import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzipSync, gzip } from "node:zlib";
import type { Fields, SentFile } from "../server/body.ts";
import { problems } from "../server/problem.ts";

/**
 * Maximum number of characters of a file, compressed and in base64, that a page keeps, so that the page stays below 200
 * KB.
 */
const KEPT_CHARS_MAX = 100_000;

/** Hidden fields by which a page keeps a file for its next form. */
export interface KeptFile {
  readonly kept_name: string;
  /** The file, compressed and in base64. Absent if it is too large; then the next form asks for the file again. */
  readonly kept?: string;
  /** SHA-256 of the file, which shows if the next form sends another one. */
  readonly kept_sha256: string;
}

const pack = promisify(gzip);

/**
 * Converts a file to hidden fields of a page, so that any instance can handle the page's next form. Compresses it in
 * another thread, because that takes a fifth of a second for some megabytes.
 */
export async function keepFile({ bytes, kind }: SentFile = { bytes: new Uint8Array(), kind: "" }): Promise<KeptFile> {
  const kept = (await pack(bytes)).toString("base64");
  const found = { kept_name: kind, kept_sha256: hash(bytes) };
  return kept.length > KEPT_CHARS_MAX ? found : { ...found, kept };
}

/** Returns the file that a page kept in its form, of at most `bytesMax` bytes; undefined if there is none. */
export function readKeptFile({ kept = "", kept_name: kind = "" }: Fields, bytesMax: number): SentFile | undefined {
  if (kept === "") return undefined;
  try {
    return { bytes: gunzipSync(Buffer.from(kept, "base64"), { maxOutputLength: bytesMax }), kind };
  } catch {
    throw problems.unreadableFile("the page did not keep the file: choose it again");
  }
}

/**
 * Throws the problem 422 if the sent file has another hash than the file of the preview. Accepts a form without a file
 * or without a kept hash.
 */
export function checkKeptFile({ kept_sha256 }: Fields, file: SentFile | undefined): void {
  if (kept_sha256 === undefined || file === undefined || hash(file.bytes) === kept_sha256) return;
  throw problems.unreadableFile("this is not the file of the preview: preview it first");
}

function hash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
