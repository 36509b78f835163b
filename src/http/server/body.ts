import { type Static, type TSchema, Type, type TObject, type TProperties } from "@sinclair/typebox";
import { closedObject, createCheck } from "../../platform/common-schemas.ts";
import { Problem, problems } from "./problem.ts";

/** The largest good body, a tracking event with every field full of escapes, stays below this. */
export const BODY_BYTES_MAX = 64 * 1024;

/**
 * A route's `body`: what an endpoint takes, as callers see it and as the service reads it. Elysia reads and checks nothing
 * (`parse: "none"`), and takes the type alone, as of a Standard Schema.
 */
export interface RequestBody<T> extends Typed<T> {
  readonly schema: TSchema;
  readonly type: string;
  /** Media types that are taken beside it, each with what it holds. */
  readonly others?: ReadonlyMap<string, TSchema>;
  /** Reads a bounded number of bytes. Throws the problem 413, 415, 400 or 422. */
  readonly read: (request: Request) => Promise<T>;
  /** The value as what it has to be. Throws the problem 422. */
  readonly fit: (value: unknown) => T;
}

/** A Standard Schema whose type alone counts. */
export interface Typed<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "reachlog";
    readonly validate: (value: unknown) => { readonly value: T };
    readonly types?: { readonly input: T; readonly output: T };
  };
}

/** What Elysia takes for a check of a body that was read, or of an answer of a handler that compiles: both fit already. */
export const UNCHECKED = {
  version: 1,
  vendor: "reachlog",
  validate: (value: unknown) => ({ value: value as never }),
} as const;

/** No bytes are `{}`. */
export function jsonBody<Schema extends TSchema>(schema: Schema): RequestBody<Static<Schema>> {
  return textBody(schema, "application/json", (text) => (text === undefined ? {} : parseJson(text)));
}

/** An object of these members and no others: a mistyped `dry_run` must never send. */
export function objectBody<Members extends TProperties>(members: Members) {
  return jsonBody(closedObject(members));
}

/** What a page's form posts, under the same limits. */
export function formBody<Schema extends TSchema>(schema: Schema): RequestBody<Static<Schema>> {
  return textBody(schema, "application/x-www-form-urlencoded", (text) =>
    Object.fromEntries(new URLSearchParams(text ?? "")),
  );
}

/** `parse` gets the body's text; undefined: it has no bytes, and needs no type. */
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

/** Throws the problem 422 for a value that does not fit. */
export function fitting<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const check = createCheck(schema);
  return (value) => {
    const misfits = check(value);
    if (misfits.length > 0) throw problems.invalid(misfits);
    return value;
  };
}

/**
 * What `use` makes of the whole body, of at most so many bytes. Rejects with the problem 413, or 400 where it ends too soon.
 * Not async, and given what comes next: each promise on the way of a click costs it something.
 */
export function readBytes<T>(
  request: Request,
  bytesMax: number,
  use: (bytes: Uint8Array<ArrayBuffer>) => T | Promise<T>,
): Promise<T> {
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) return Promise.reject(problems.tooLarge(bytesMax));
  // With a length the whole is known to fit. Else the body is looked at, which makes a stream of it.
  return (length === null ? readCounted(request.body, bytesMax) : request.bytes()).then(use, refuseUnread);
}

/** A caller that hangs up in the middle is no fault of ours. */
function refuseUnread(fault: unknown): never {
  throw fault instanceof Problem ? fault : problems.malformed("The body is incomplete.");
}

/** Without a length the bytes are counted as they come. */
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

/** Nothing is unpacked here, and packed bytes would be refused as broken ones. `wanted`: the types that are taken. */
function refusePacked(headers: Headers, wanted: string): void {
  if ((headers.get("content-encoding") ?? "identity") !== "identity") throw problems.unsupportedType(wanted);
}

/** Replacing a broken byte would silently alter what the audit log says. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** All good bodies are flat. Checking a tower of brackets costs seconds, and any of them is refused anyway. */
const LEVELS_MAX = 16;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/**
 * Parses JSON that every parser reads alike (RFC 7493): no member twice, no half of a surrogate pair, no NUL. Throws the
 * problem 400.
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
  // Both come as escapes alone: bare, they are no JSON or no UTF-8.
  if (text.includes("\\u") && !isStorable(value)) {
    throw problems.malformed("The body holds a NUL or half of a surrogate pair.");
  }
  return value;
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

/** The members in the text of valid JSON: each has one colon outside of all strings. */
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

/** The members that are left of them: of those with one name the parser keeps the last. */
function countMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((sum, each) => sum + countMembers(each), own);
}

/** Databases end a text at a NUL, and UTF-8 has no bytes for half of a pair: neither would be kept as it came. */
function isStorable(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\0");
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorable(inner));
}

/** What a form fills in, by name. Boxes that are not ticked are absent. */
export type Fields = Readonly<Record<string, string>>;

/** What a page's form sends when a file is chosen: its fields, and the file with its name. */
export interface SentForm {
  readonly fields: Fields & { readonly form_token: string; readonly back: string };
  readonly file: SentFile;
}

/** A file as it was sent; `kind`: what it is, by its media type or its name. */
export interface SentFile<Kind = string> {
  readonly bytes: Uint8Array;
  readonly kind: Kind;
}

/**
 * A body that is a file, such as `curl --data-binary` sends. What it holds is not looked at. `kinds`: the media types that are
 * taken; what each stands for, and what a file of it holds at its simplest.
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

/** Empty where its parameters say that it is in an encoding other than Unicode's. */
function parseMediaType(header: string): string {
  const [type = "", ...parameters] = header.toLowerCase().split(";");
  const charset = parameters.map((one) => /^ *charset="?([^"]*)"? *$/.exec(one)?.[1]).find((one) => one !== undefined);
  return charset === undefined || /^utf-(8|16)$/.test(charset) ? type.trim() : "";
}

const FILE_FIELD = "file";

/** A form with one file; `fields`: the others, which are texts. */
export function uploadBody(fields: TObject, bytesMax: number): RequestBody<SentForm> {
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
      const file = sent.get(FILE_FIELD);
      if (!(file instanceof File)) throw problems.invalid([{ path: `/${FILE_FIELD}`, message: "no file was sent" }]);
      return {
        fields: fit(Object.fromEntries(texts)) as SentForm["fields"],
        file: { bytes: await file.bytes(), kind: file.name },
      };
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
