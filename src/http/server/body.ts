import { type Static, type TSchema, Type, type TObject, type TProperties } from "@sinclair/typebox";
import { closedObject, createCheck } from "../../platform/common-schemas.ts";
import { Problem, problems } from "./problem.ts";

/**
 * Maximum size of a JSON body, in bytes. The largest valid body, a click with every field full of escaped characters,
 * is smaller.
 */
export const BODY_BYTES_MAX = 64 * 1024;

/**
 * The `body` of a route: its description for callers, and how the service reads it. Elysia uses only its type, and
 * neither reads nor checks a body (`parse: "none"`).
 */
export interface RequestBody<T> extends Typed<T> {
  readonly schema: TSchema;
  readonly type: string;
  /** Other media types in which the body is accepted, each with the schema of its content. */
  readonly others?: ReadonlyMap<string, TSchema>;
  /** Reads the body of a request, up to a limit of bytes. Throws the problem 413, 415, 400 or 422. */
  readonly read: (request: Request) => Promise<T>;
  /** Returns the body's value with its type. Throws the problem 422 if it does not fit the schema. */
  readonly fit: (value: unknown) => T;
}

/** A Standard Schema that only carries a type for the compiler; it checks nothing. */
export interface Typed<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "reachlog";
    readonly validate: (value: unknown) => { readonly value: T };
    readonly types?: { readonly input: T; readonly output: T };
  };
}

/** A Standard Schema that accepts everything: bodies are checked when they are read, and answers by the compiler. */
export const UNCHECKED = {
  version: 1,
  vendor: "reachlog",
  validate: (value: unknown) => ({ value: value as never }),
} as const;

/** Describes a JSON body. A body of no bytes counts as `{}`. */
export function jsonBody<Schema extends TSchema>(schema: Schema): RequestBody<Static<Schema>> {
  return textBody(schema, "application/json", (text) => (text === undefined ? {} : parseJson(text)));
}

/**
 * Describes a JSON body that is an object with these members and no others. If others were ignored, a mistyped
 * `dry_run` would send messages.
 */
export function objectBody<Members extends TProperties>(members: Members) {
  return jsonBody(closedObject(members));
}

/** Describes the body that a page's form posts, under the limits of a JSON body. */
export function formBody<Schema extends TSchema>(schema: Schema): RequestBody<Static<Schema>> {
  return textBody(schema, "application/x-www-form-urlencoded", (text) =>
    Object.fromEntries(new URLSearchParams(text ?? "")),
  );
}

/**
 * Describes a body of text. `parse` gets the text, or undefined if the body has no bytes; such a body needs no media
 * type.
 */
function textBody<Schema extends TSchema>(
  schema: Schema,
  type: string,
  parse: (text: string | undefined) => unknown,
): RequestBody<Static<Schema>> {
  const fit = fitting(schema);
  const taken = { type, inUtf8: new RegExp(`^${type} *(; *charset="?utf-8"? *)?$`, "i") };
  const use = (headers: Headers, bytes: Uint8Array): Static<Schema> =>
    fit(parse(bytes.length === 0 ? undefined : readText(headers, bytes, taken)));
  const read = (request: Request) => readBytes(request, BODY_BYTES_MAX, (bytes) => use(request.headers, bytes));
  return { "~standard": UNCHECKED, schema, type, fit, read };
}

/** Returns a function that returns a value which fits the schema, and throws the problem 422 for any other. */
export function fitting<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const check = createCheck(schema);
  return (value) => {
    const misfits = check(value);
    if (misfits.length > 0) throw problems.invalid(misfits);
    return value;
  };
}

/**
 * Applies `use` to the whole request body, of at most `bytesMax` bytes. Rejects with the problem 413, or 400 if the
 * body ends too soon. It takes a callback because each further promise would cost every click some time.
 */
export function readBytes<T>(
  request: Request,
  bytesMax: number,
  use: (bytes: Uint8Array<ArrayBuffer>) => T | Promise<T>,
): Promise<T> {
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) return Promise.reject(problems.tooLarge(bytesMax));
  // A declared length was compared with the limit above, so the whole body fits. Without one, the bytes are counted as
  // they arrive, which needs a stream.
  return (length === null ? readCounted(request.body, bytesMax) : request.bytes()).then(use, refuseUnread);
}

/**
 * Converts the fault of an incomplete body to the problem 400, because the caller disconnected, which is no fault of
 * the service.
 */
function refuseUnread(fault: unknown): never {
  throw fault instanceof Problem ? fault : problems.malformed("The body is incomplete.");
}

/** Reads a body that declares no length, and counts its bytes as they arrive. */
async function readCounted(body: ReadableStream<Uint8Array> | null, bytesMax: number) {
  if (body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > bytesMax) throw problems.tooLarge(bytesMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

interface TakenType {
  readonly type: string;
  readonly inUtf8: RegExp;
}

function readText(headers: Headers, bytes: Uint8Array, { type, inUtf8 }: TakenType): string {
  if (!inUtf8.test(headers.get("content-type") ?? "")) throw problems.unsupportedType(type);
  refusePacked(headers, type);
  try {
    return utf8.decode(bytes);
  } catch {
    throw problems.malformed("The body is not valid UTF-8.");
  }
}

/**
 * Throws the problem 415 for a compressed body, which the service does not decompress. `wanted` names the accepted
 * media types.
 */
function refusePacked(headers: Headers, wanted: string): void {
  if ((headers.get("content-encoding") ?? "identity") !== "identity") throw problems.unsupportedType(wanted);
}

/**
 * Decoder of bodies that throws for invalid UTF-8. If it replaced wrong bytes, the log would not hold what the caller
 * sent.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Maximum depth of nested objects and arrays in a body. Valid bodies are flat, and to check thousands of nested
 * brackets would take seconds.
 */
const LEVELS_MAX = 16;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Parses JSON that all parsers read alike (RFC 7493): no member twice, no half of a surrogate pair, no NUL character.
 * Throws the problem 400 for other text.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw problems.malformed("The body is not valid JSON.");
  }
  if (!isFlat(text) && !hasLevels(value, LEVELS_MAX)) throw problems.malformed("The body is nested too deeply.");
  if (membersWritten(text) !== countMembers(value)) throw problems.malformed("The body names a member twice.");
  // A NUL or half of a surrogate pair can only be written as an escape, so other texts need no check.
  if (text.includes("\\u") && !isStorable(value)) {
    throw problems.malformed("The body holds a NUL or half of a surrogate pair.");
  }
  return value;
}

/**
 * True if the JSON text has no bracket after the first one, as nearly every valid body. Brackets within strings count
 * as well.
 */
function isFlat(text: string): boolean {
  return text.indexOf("{", 1) === -1 && text.indexOf("[", 1) === -1;
}

/** True if a value has at most this many levels of objects and arrays. */
function hasLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => hasLevels(inner, levels - 1));
}

/** Counts the members that valid JSON text declares. Each has one colon outside of strings. */
function membersWritten(text: string): number {
  let members = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COLON) members += 1;
  }
  return members;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
  return slashes % 2 === 1;
}

/**
 * Counts the members of a parsed JSON value. If a name is there twice, the parser keeps only the last, so the count is
 * lower than in the text.
 */
function countMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((sum, each) => sum + countMembers(each), own);
}

/**
 * True if all texts in a JSON value can be stored unchanged: databases end a text at a NUL character, and UTF-8 cannot
 * encode half of a surrogate pair.
 */
function isStorable(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\0");
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorable(inner));
}

/** The fields of a posted form, by name. Checkboxes that are not ticked are absent. */
export type Fields = Readonly<Record<string, string>>;

/** A form that was sent with a file: its fields, and the file with its name. */
export interface SentForm {
  readonly fields: Fields & { readonly form_token: string; readonly back: string };
  readonly file: SentFile;
}

/** A file as the caller sent it. `kind`: its format, from its media type or its name. */
export interface SentFile<Kind = string> {
  readonly bytes: Uint8Array;
  readonly kind: Kind;
}

/**
 * Describes a body that is a file, as `curl --data-binary` sends it, without a check of its content. `kinds` maps each
 * accepted media type to its kind, and to a schema of the simplest content for the API document.
 */
export function fileBody<Kind>(
  kinds: ReadonlyMap<string, readonly [Kind, TSchema]>,
  bytesMax: number,
): RequestBody<SentFile<Kind>> {
  const [[type, schema] = ["", Type.String()] as const, ...others] = [...kinds].map(
    ([name, [, held]]) => [name, held] as const,
  );
  return {
    "~standard": UNCHECKED,
    schema,
    type,
    others: new Map(others),
    async read(request) {
      const { headers } = request;
      const [kind] = kinds.get(parseMediaType(headers.get("content-type") ?? "")) ?? [];
      const wanted = [...kinds.keys()].join(" or ");
      if (kind === undefined) throw problems.unsupportedType(wanted);
      refusePacked(headers, wanted);
      return readBytes(request, bytesMax, (bytes) => ({ bytes, kind }));
    },
    fit: (file) => file as SentFile<Kind>,
  };
}

/** Returns the media type in a `Content-Type`; empty if its parameters name an encoding that is not one of Unicode. */
function parseMediaType(header: string): string {
  const [type = "", ...parameters] = header.toLowerCase().split(";");
  const charset = parameters.map((one) => /^ *charset="?([^"]*)"? *$/.exec(one)?.[1]).find((one) => one !== undefined);
  return charset === undefined || /^utf-(8|16)$/.test(charset) ? type.trim() : "";
}

const FILE_FIELD = "file";

/**
 * Describes the body of a form that uploads one file. `fields` describes its other fields, which are texts. If the form
 * sends no file, `readKept` returns the one that the page kept in its fields.
 */
export function uploadBody(
  fields: TObject,
  bytesMax: number,
  readKept?: (fields: Fields) => SentFile | undefined,
): RequestBody<SentForm> {
  const fit = fitting(fields);
  return {
    "~standard": UNCHECKED,
    schema: Type.Object({ ...fields.properties, [FILE_FIELD]: Type.String({ description: "The file." }) }),
    type: "multipart/form-data",
    async read(request) {
      const type = request.headers.get("content-type") ?? "";
      if (parseMediaType(type) !== "multipart/form-data") throw problems.unsupportedType("multipart/form-data");
      refusePacked(request.headers, "multipart/form-data");
      const sent = await readBytes(request, bytesMax, (bytes) => readParts(bytes, type));
      const texts = [...sent].filter((part): part is [string, string] => typeof part[1] === "string");
      const part = sent.get(FILE_FIELD);
      const given = fit(Object.fromEntries(texts)) as SentForm["fields"];
      // If the operator chose no file, the browser sends an empty one without a name.
      const chosen = part instanceof File ? { bytes: await part.bytes(), kind: part.name } : undefined;
      const kept = chosen === undefined || chosen.bytes.length === 0 ? readKept?.(given) : undefined;
      const file = kept ?? chosen;
      if (file === undefined) throw problems.invalid([{ path: `/${FILE_FIELD}`, message: "no file was sent" }]);
      return { fields: given, file };
    },
    fit: (form) => form as SentForm,
  };
}

async function readParts(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { "content-type": type } }).formData();
  } catch {
    throw problems.malformed("The body is not a form.");
  }
}
