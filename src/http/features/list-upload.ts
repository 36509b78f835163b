import { type TSchema, Type } from "@sinclair/typebox";
import { CELL_NOTES } from "../../recipients/file/cell-notes.ts";
import { formatOfName, REMARKS_MAX, type RecipientsFormat } from "../../recipients/file/format.ts";
import { readInWorker, type RowOf } from "../../recipients/file/read-in-worker.ts";
import type { ReadTask, Remarks } from "../../recipients/file/read-thread.ts";
import { DATE_ORDERS, type DateOrder } from "../../recipients/parse-day.ts";
import type { ImportOptions } from "../../recipients/import.ts";
import { ServiceError } from "../../platform/service-error.ts";
import type { AppDeps } from "../deps.ts";
import { type Fields, type SentFile, uploadBody } from "../server/body.ts";
import { commonFields } from "../server/form-routes.ts";
import { Problem, problems, repeatable } from "../server/problem.ts";
import { choiceIn } from "../server/query.ts";
import { closedObject, count, named, text } from "../../platform/common-schemas.ts";

/** Rows appended at once: a few milliseconds of the thread that serves requests, including keys and folds. */
const SENT_CHUNK_ROWS = 64;

/** Bytes for the form's fields and boundaries, in addition to the file. */
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

/** Members of a report about rows that cannot be used. */
export const refusedMembers = {
  refused: count,
  refused_rows: Type.Array(refusedRow, {
    description: `The first ${REMARKS_MAX}: the line, the first characters of the unusable value, and the reason.`,
  }),
};

/** Members of a report about cells that were not read as they are written. */
export const notedMembers = {
  noted_cells: count,
  notes: Type.Array(cellNote, {
    description:
      "One for each column, and for each word that was read as a blank cell. `line`: of the first cell. Only `read_as_blank` and `guard_removed` changed what was imported.",
  }),
};

/** Converts notes to {@link notedMembers}. */
export const toNoted = ({ count: noted_cells, first }: Remarks["notes"]) => ({ noted_cells, notes: [...first] });

/** The query of an import. */
export const listQuery = {
  dates: "The order of day and month in dates such as `3/2/2026`: `dmy` or `mdy`. Without it such a row is refused.",
};

/** Converts refused rows to {@link refusedMembers}. */
export const toRefused = ({ count: refused, first }: Remarks["refused"]) => ({ refused, refused_rows: [...first] });

export const cell = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

export const nameColumns = {
  username: Type.Optional(Type.String({ examples: ["sara_sells"] })),
  handle: Type.Optional(Type.String({ examples: ["sara_sells"] })),
  id: Type.Optional(Type.String({ examples: ["1786543210987654321"] })),
};

/**
 * Returns the media types of a list, each with its format and schema. `header` is a pattern of a CSV's first line;
 * `csv` and `json` are examples of a CSV and of a line of JSON.
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
  dates: Type.Optional(
    Type.Union([Type.Literal(""), ...DATE_ORDERS.map((order) => Type.Literal(order))], {
      description: `${listQuery.dates} Empty: as without it.`,
    }),
  ),
});

/** Declares a form with a file to choose, and converts it to the operation's body. */
export function listUpload(bytesMax: number) {
  const upload = uploadBody(formFields, bytesMax + FORM_BYTES_MAX);
  return {
    upload: {
      ...upload,
      read: (request: Request) => upload.read(request).catch((fault: unknown) => explain(fault, bytesMax)),
    },
    body: ({ dates }: Fields, file?: SentFile) => ({
      bytes: file?.bytes,
      kind: parseFormat(file?.kind ?? ""),
      dates: DATE_ORDERS.find((order) => order === dates),
    }),
    pageDescription: "The page with the result.",
  };
}

interface ListRequest {
  readonly request: Request;
  /** `dates` is set by a form. A program sends it in the query. */
  readonly body: { readonly bytes: Uint8Array; readonly kind: RecipientsFormat; readonly dates?: DateOrder };
}

/**
 * Imports the list in a request's body, one list at a time. Its reading ends when the client hangs up. Throws the
 * problems 422 and 503; after a stop, some rows may have been imported.
 */
export function takeList<More extends Pick<ReadTask, "hashKey">, Imported extends { readonly taken: number }>(
  { load, clock, stopping }: AppDeps,
  { request, body: { bytes: file, kind: format, dates = datesIn(request) } }: ListRequest,
  more: More,
  importRows: (rows: readonly RowOf<ReadTask & More>[], options: ImportOptions) => Promise<Imported>,
): Promise<Imported & Remarks> {
  const take = async () => {
    const signal = AbortSignal.any([stopping, request.signal]);
    const { rows, ...remarks } = await readList({ file, format, now: clock(), dates, ...more }, signal);
    const imported = await importRows(rows, { chunkRows: SENT_CHUNK_ROWS, signal: stopping });
    if (imported.taken < rows.length) throw problems.logUnavailable(imported.taken === 0);
    return { ...imported, ...remarks };
  };
  return repeatable(load.whileTaking(take));
}

/**
 * Returns the order of day and month (`dmy` or `mdy`) that the query gives for dates of the file; undefined if it gives
 * none. Throws the problem 422 for another value.
 */
function datesIn({ url }: Request): DateOrder | undefined {
  const { searchParams } = new URL(url);
  const [first] = DATE_ORDERS;
  return searchParams.has("dates") ? choiceIn(searchParams, "dates", DATE_ORDERS, first) : undefined;
}

async function readList<Task extends ReadTask>(task: Task, signal: AbortSignal) {
  try {
    return await readInWorker(task, signal);
  } catch (fault) {
    if (signal.aborted) throw problems.logUnavailable(true);
    throw fault instanceof ServiceError && fault.kind === "invalid" ? problems.unreadableFile(fault.message) : fault;
  }
}

/** Explains a file that is too large to a person, who chose a file and knows of no request body. */
function explain(fault: unknown, bytesMax: number): never {
  if (!(fault instanceof Problem) || fault.status !== 413) throw fault;
  const words = `The file is larger than ${bytesMax / 2 ** 20} MiB. Nothing was taken: send it in parts, or import it by the command line.`;
  throw fault.with({}, { words, nextStep: { href: "/people", label: "Back to the people" } });
}

/** Throws the problem 422 if the file's name shows no usable format. */
function parseFormat(name: string): RecipientsFormat {
  const format = formatOfName(name);
  if (format === "workbook") throw problems.unreadableFile('this is a workbook: save it as CSV ("CSV UTF-8")');
  if (format === undefined) throw problems.unreadableFile("the file's name does not end in .csv, .json or .jsonl");
  return format;
}
