import { problems } from "./problem.ts";

/** The largest good body, a tracking event with every field full of escapes, stays below this. */
export const BODY_BYTES_MAX = 64 * 1024;

/** All good bodies are flat. Checking a tower of brackets costs seconds, and any of them is refused anyway. */
const LEVELS_MAX = 16;

const JSON_TYPE = /^application\/json *(; *charset="?utf-8"? *)?$/i;

const FORM_TYPE = /^application\/x-www-form-urlencoded *(; *charset="?utf-8"? *)?$/i;

/**
 * Reads a JSON body of at most {@link BODY_BYTES_MAX} bytes; an absent or empty one is `{}`.
 * Throws the problem 413, 415 or 400.
 */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request, JSON_TYPE);
  return text === "" ? {} : parse(text);
}

/** Reads what a page's form posts, under the same limits. */
export async function readForm(request: Request): Promise<Record<string, string>> {
  return Object.fromEntries(new URLSearchParams(await readText(request, FORM_TYPE)));
}

async function readText(request: Request, type: RegExp): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > BODY_BYTES_MAX) throw problems.tooLarge(BODY_BYTES_MAX);
  const bytes = await readBytes(request);
  if (bytes.length === 0) return "";
  if (!type.test(request.headers.get("content-type") ?? "")) throw problems.unsupportedType();
  return decode(bytes);
}

async function readBytes(request: Request): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array();
  // With a length the whole is known to fit; without one it is counted as it comes.
  if (request.headers.has("content-length")) return request.bytes();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw problems.tooLarge(BODY_BYTES_MAX);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Replacing a broken byte would silently alter what the audit log says. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw problems.malformed("The body is not valid UTF-8.");
  }
}

function parse(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw problems.malformed("The body is not valid JSON.");
  }
  if (!hasLevels(value, LEVELS_MAX)) throw problems.malformed("The body is nested too deeply.");
  return value;
}

/** Whether a value has at most so many levels of objects and arrays. */
function hasLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => hasLevels(inner, levels - 1));
}
