import { type TSchema, Type } from "@sinclair/typebox";
import { CELL_NOTES, describeCellNote, type CellNote } from "../../recipients/file/cell-notes.ts";
import { formatOfName, REMARKS_MAX, type RecipientsFormat } from "../../recipients/file/format-and-limits.ts";
import { readInWorker, type RowOf } from "../../recipients/file/read-in-worker.ts";
import type { ReadTask, Remarks } from "../../recipients/file/read-file-thread.ts";
import { DATE_ORDERS, type DateOrder } from "../../recipients/parse-day.ts";
import type { ImportOptions } from "../../recipients/import.ts";
import { BASES } from "../../recipients/recipient-list-and-page.ts";
import { CONSENT_SOURCE_CHARS_MAX, parseStatedConsent } from "../../recipients/parse-consent.ts";
import { parseColumnMap } from "../../recipients/file/parse-column-choices.ts";
import { ServiceError } from "../../platform/service-error.ts";
import type { HttpContext } from "../http-context.ts";
import { checkKeptFile, readKeptFile } from "./keep-file-in-form.ts";
import { type Fields, type SentFile, uploadBody } from "../server/body.ts";
import { commonFields } from "../server/form-routes.ts";
import { Problem, problems, repeatable } from "../server/problem.ts";
import { choiceIn } from "../server/refuse-invalid-query.ts";
import { closedObject, count, named, text } from "../../platform/common-schemas.ts";

/**
 * Number of rows of an uploaded list that one append writes. Such an append delays other requests for a few
 * milliseconds, including the time for keys and folding.
 */
const SENT_CHUNK_ROWS = 64;

/** Maximum time in ms that a preview or a form waits while another list is read. */
const SLOT_WAIT_MS = 5_000;

/** Maximum size of an upload form without its file, in bytes. */
const FORM_BYTES_MAX = 64 * 1024;

export const line = Type.Integer({ minimum: 1, description: "The line number, as an editor shows it." });

const refusedRow = named(
  "RefusedRow",
  Type.Object({ line, value: text("ada builds"), reason: text("not a handle of X") }),
);

const cellNote = named(
  "CellNote",
  Type.Object({
    note: Type.Union(CELL_NOTES.map((note) => Type.Literal(note))),
    column: text("name"),
    value: text("null"),
    line,
    count,
  }),
);

/** Schema of an import report's members about rows that cannot be used. */
export const refusedMembers = {
  refused: count,
  refused_rows: Type.Array(refusedRow, {
    description: `The first ${REMARKS_MAX}: the line, the first characters of the unusable value, and the reason.`,
  }),
};

/**
 * Schema of an import report's members about notes: cells that were changed when they were read, or that look wrong.
 */
export const notedMembers = {
  noted_cells: count,
  notes: Type.Array(cellNote, {
    description:
      "One for each column, and for each word that was read as a blank cell. `line`: of the first cell. Only `read_as_blank` and `guard_removed` changed what was imported.",
  }),
};

/** Converts the notes of an import to {@link notedMembers}. */
export const toNoted = ({ count: noted_cells, first }: Remarks["notes"]) => ({ noted_cells, notes: [...first] });

/** Replaces the notes of an import report by sentences, for a page. */
export function describeNotes<Report>({ notes, ...report }: Report & { readonly notes: readonly CellNote[] }) {
  return { ...report, notes: notes.map(describeCellNote) };
}

/** Schema of the query of an import over HTTP. */
export const listQuery = {
  dates: "The order of day and month in dates such as `3/2/2026`: `dmy` or `mdy`. Without it such a row is refused.",
};

/** Schema of the query of an import of recipients over HTTP. */
export const mappedQuery = {
  ...listQuery,
  map: "What a column of the file becomes, as `header=column`, such as `Opt-in date=consent_at`; `E-Mail=` leaves the column out. May be given several times.",
  basis:
    "The basis of consent for all rows that give none: `opt_in`, `dm_first` or `none`. Without it, a row with evidence of a consent and no basis is refused.",
  consent_source: "The source of consent for all rows with a basis that give none, such as `Newsletter form`.",
};

/** Converts the refused rows of an import to the members {@link refusedMembers} of its report. */
export const toRefused = ({ count: refused, first }: Remarks["refused"]) => ({ refused, refused_rows: [...first] });

export const cell = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

export const nameColumns = {
  username: Type.Optional(Type.String({ examples: ["sara_sells"] })),
  handle: Type.Optional(Type.String({ examples: ["sara_sells"] })),
  id: Type.Optional(Type.String({ examples: ["1786543210987654321"] })),
};

/**
 * Returns the media types in which a list may be sent, each with its format and schema. `header` is a pattern of a
 * CSV's first line; `csv` and `json` are examples of a CSV and of a line of JSON.
 */
export function listFormats(
  name: "recipient" | "suppression",
  row: TSchema,
  { header, csv, json }: { readonly header: string; readonly csv: string; readonly json: string },
) {
  const list = Type.Union([Type.Array(row), closedObject({ [`${name}s`]: Type.Array(row) })]);
  const asCsv = Type.String({
    pattern: String.raw`^${header}(?:\r?\n[^\u0000-\u001f"]*)*$`,
    description: `A header, then a line for each ${name}. Columns may come in any order, with quotes, and separated by \`;\` or tabs.`,
    examples: [csv],
  });
  const asLines = Type.String({
    pattern: String.raw`^[^\u0000-\u0008]*$`,
    description: "One object per line, as in a list.",
    examples: [json],
  });
  return new Map<string, readonly [RecipientsFormat, TSchema]>([
    ["text/csv", ["csv", asCsv]],
    ["application/json", ["json", list]],
    ["application/jsonl", ["jsonl", asLines]],
    ["application/x-ndjson", ["jsonl", asLines]],
  ]);
}

const formFields = Type.Object({
  ...commonFields.properties,
  basis: Type.Optional(
    Type.Union([Type.Literal(""), ...BASES.map((basis) => Type.Literal(basis))], {
      description: "The basis of consent for all rows that give none. An empty value counts as absent.",
    }),
  ),
  consent_source: Type.Optional(
    Type.String({
      maxLength: CONSENT_SOURCE_CHARS_MAX,
      description: "The source of consent for all rows with a basis that give none.",
      examples: ["Newsletter form"],
    }),
  ),
  dates: Type.Optional(
    Type.Union([Type.Literal(""), ...DATE_ORDERS.map((order) => Type.Literal(order))], {
      description: `${listQuery.dates} An empty value counts as absent.`,
    }),
  ),
});

/** Returns the part of a console form that uploads a list, and converts the sent file to the operation's body. */
export function listUpload(bytesMax: number) {
  const upload = uploadBody(formFields, bytesMax + FORM_BYTES_MAX, (fields) => readKeptFile(fields, bytesMax));
  return {
    upload: {
      ...upload,
      read: (request: Request) => upload.read(request).catch((fault: unknown) => explain(fault, bytesMax)),
    },
    body: (fields: Fields, file?: SentFile) => {
      checkKeptFile(fields, file);
      return {
        bytes: file?.bytes,
        kind: parseFormat(file?.kind ?? ""),
        dates: DATE_ORDERS.find((order) => order === fields["dates"]),
        stated: { basis: fields["basis"], consent_source: fields["consent_source"] },
        map: Object.entries(fields).flatMap(([name, value]) => (MAP_FIELD.test(name) ? [value] : [])),
      };
    },
    pageDescription: "The page with the result.",
  };
}

/** Matches a field of a form that chooses a column. Its value is as in the query: `header=column`. */
const MAP_FIELD = /^map_\d+$/;

type GivenForAll = Parameters<typeof parseStatedConsent>[0];

export interface ListRequest {
  readonly request: Request;
  /**
   * The uploaded list. `dates`: the order of day and month in its dates, if a form sent it; programs give it in the
   * query.
   */
  readonly body: {
    readonly bytes: Uint8Array;
    readonly kind: RecipientsFormat;
    readonly dates?: DateOrder;
    /** The operator's choices of columns, if a form sent them. */
    readonly map?: readonly string[];
    /** The consent that a form states for all rows; programs give it in the query. */
    readonly stated?: GivenForAll;
  };
}

/**
 * Imports the list in a request's body, one list at a time; previews and forms wait for their turn. If the client
 * disconnects before the list is read, nothing is imported. Throws the problems 422 and 503.
 */
export function takeList<More extends Partial<ReadTask>, Imported extends { readonly taken: number }>(
  { load, clock, stopping }: HttpContext,
  { request, body }: ListRequest,
  more: More,
  importRows: (rows: readonly RowOf<ReadTask & More>[], options: ImportOptions) => Promise<Imported>,
): Promise<Imported & Remarks> {
  const { bytes: file, kind: format, dates = datesIn(request), map = mapIn(request) } = body;
  const signal = AbortSignal.any([stopping, request.signal]);
  const take = async () => {
    const choices = parseChoices(map, body.stated ?? statedIn(request));
    const task = { file, format, now: clock(), dates, ...choices, ...more };
    const { rows, ...remarks } = await readList(task, signal);
    const imported = await importRows(rows, { chunkRows: SENT_CHUNK_ROWS, signal: stopping });
    if (imported.taken < rows.length) throw problems.logUnavailable(imported.taken === 0);
    return { ...imported, ...remarks };
  };
  // The browser sends a new preview at each change in the form, often while the service still reads the list for the
  // previous one. So previews and forms may wait.
  const canWait = body.map !== undefined || more.preview !== undefined;
  return repeatable(load.whileTaking(take, canWait ? { ms: SLOT_WAIT_MS, signal } : undefined));
}

/**
 * Returns the order of day and month (`dmy` or `mdy`) that the query gives for the list's dates; undefined if it gives
 * none. Throws the problem 422 for another value.
 */
function datesIn({ url }: Request): DateOrder | undefined {
  const { searchParams } = new URL(url);
  const [first] = DATE_ORDERS;
  return searchParams.has("dates") ? choiceIn(searchParams, "dates", DATE_ORDERS, first) : undefined;
}

function mapIn({ url }: Request): readonly string[] {
  return new URL(url).searchParams.getAll("map");
}

function statedIn({ url }: Request): GivenForAll {
  const { searchParams } = new URL(url);
  const text = (name: string) => searchParams.get(name) ?? undefined;
  return { basis: text("basis"), consent_source: text("consent_source") };
}

/**
 * Parses choices of columns, and the consent stated for all rows. Throws the problem 422 for a choice that is not
 * `header=column`, and for an unknown basis.
 */
function parseChoices(map: readonly string[], stated: GivenForAll) {
  try {
    return { map: parseColumnMap(map), stated: parseStatedConsent(stated) };
  } catch (fault) {
    throw refuseFile(fault);
  }
}

async function readList<Task extends ReadTask>(task: Task, signal: AbortSignal) {
  try {
    return await readInWorker(task, signal);
  } catch (fault) {
    if (signal.aborted) throw problems.logUnavailable(true);
    throw refuseFile(fault);
  }
}

/** Converts the fault of an unusable file or mapping to the problem 422. */
function refuseFile(fault: unknown): unknown {
  return fault instanceof ServiceError && fault.kind === "invalid" ? problems.unreadableFile(fault.message) : fault;
}

/**
 * Throws the problem of a file that is too large with words for a person, who chose a file and knows nothing of a
 * request body. Throws any other fault again.
 */
function explain(fault: unknown, bytesMax: number): never {
  if (!(fault instanceof Problem) || fault.status !== 413) throw fault;
  const words = `The file is larger than ${bytesMax / 2 ** 20} MiB. Nothing was imported: split the file, or import it on the command line.`;
  throw fault.with({}, { words, nextStep: { href: "/people", label: "Back to the people" } });
}

/**
 * Returns the format of an uploaded list, which its file name's ending tells. Throws the problem 422 for another
 * ending.
 */
function parseFormat(name: string): RecipientsFormat {
  const format = formatOfName(name);
  if (format === "workbook") throw problems.unreadableFile('this is a workbook: save it as CSV ("CSV UTF-8")');
  if (format === undefined) throw problems.unreadableFile("the file's name does not end in .csv, .json or .jsonl");
  return format;
}
