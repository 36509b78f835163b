import { Problem, problems } from "./problem.ts";

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
  const bytes = await readBytes(request);
  return bytes.length === 0 ? {} : parse(textOf(request, bytes, JSON_TYPE));
}

/** Reads what a page's form posts, under the same limits. */
export async function readForm(request: Request): Promise<Record<string, string>> {
  const bytes = await readBytes(request);
  return Object.fromEntries(new URLSearchParams(bytes.length === 0 ? "" : textOf(request, bytes, FORM_TYPE)));
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > BODY_BYTES_MAX) throw problems.tooLarge(BODY_BYTES_MAX);
  try {
    // With a length the whole is known to fit. Else the body is looked at, which makes a stream of it.
    return await (length === null ? readCounted(request.body) : request.bytes());
  } catch (fault) {
    // Whoever hangs up in the middle is no fault of ours.
    throw fault instanceof Problem ? fault : problems.malformed("The body ended before its end.");
  }
}

/** Without a length the bytes are counted as they come. */
async function readCounted(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  if (body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw problems.tooLarge(BODY_BYTES_MAX);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function textOf({ headers }: Request, bytes: Uint8Array, type: RegExp): string {
  if (!type.test(headers.get("content-type") ?? "")) throw problems.unsupportedType();
  return decode(bytes);
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
  if (isFlat(text)) return value;
  if (!hasLevels(value, LEVELS_MAX)) throw problems.malformed("The body is nested too deeply.");
  return emptied(value);
}

/**
 * A value whose members hold no members. No body has nested ones: they are refused whatever is in them, and a member
 * called `toString` would make Elysia fail while it words that refusal.
 */
function emptied(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return hollowed(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]: [string, unknown]) => [name, hollowed(inner)]));
}

/** An array or an object without what is in it; any other value as it is. */
function hollowed(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return typeof value === "object" && value !== null ? {} : value;
}

/** Whether nothing opens behind the outermost bracket, not even in a string: so it is with nearly every good body. */
function isFlat(text: string): boolean {
  return text.indexOf("{", 1) === -1 && text.indexOf("[", 1) === -1;
}

/** Whether a value has at most so many levels of objects and arrays. */
function hasLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => hasLevels(inner, levels - 1));
}
