import { readFileSync } from "node:fs";
import { importRecipients, type ImportContext, type Imported } from "../../recipients/import.ts";
import { parseColumnMap } from "../../recipients/file/parse-column-choices.ts";
import { parseStatedConsent } from "../../recipients/parse-consent.ts";
import type { previewRecipients } from "../../recipients/file/preview-columns-and-dates.ts";
import { previewImport } from "../../recipients/preview-import.ts";
import { fieldsUsed } from "../../template/template.ts";
import { inTimeSlices } from "../../platform/work-in-time-slices.ts";
import { DATE_ORDERS, type DateOrder } from "../../recipients/parse-day.ts";
import { describeCellNote } from "../../recipients/file/cell-notes.ts";
import type { parseRecipients, RefusedRow } from "../../recipients/parse-imported-lists.ts";
import {
  formatOfName,
  RECIPIENTS_FORMATS,
  type RecipientsFormat,
  FILE_BYTES_MAX,
} from "../../recipients/file/format-and-limits.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";
import type { Config } from "../../config/config.ts";
import { Option, readConfig } from "../shared/command.ts";
import { answer, EXIT, type Terminal, printable } from "../shared/terminal-answers-and-exit-codes.ts";
import { COMMAND_METADATA } from "../shared/open-log-and-record-reads.ts";
import { openReachlog } from "../../service/open-reachlog.ts";
import { withProgress } from "../shared/progress.ts";
import { withPath } from "../../platform/describe-system-errors.ts";

/**
 * Number of rows in one append of an import. A running service cannot append meanwhile, so more rows would delay it.
 */
export const CHUNK_ROWS = 5_000;

export interface ImportFileOptions {
  readonly format?: RecipientsFormat | undefined;
  readonly dates?: DateOrder | undefined;
  readonly map?: readonly string[];
  readonly basis?: string;
  readonly consentSource?: string;
  readonly preview?: true | undefined;
  readonly json?: true | undefined;
}

export async function importFile(
  terminal: Terminal,
  path: string,
  { format, dates, map, basis, consentSource, preview, json }: ImportFileOptions,
): Promise<number> {
  const read: RecipientsFormat = chooseFormat(path, format);
  const input = await readInput(path);
  await using context = await openReachlog(readConfig(terminal));
  const stated = parseStatedConsent({ basis, consent_source: consentSource });
  const options = { now: context.logClock.now(), dates, map: parseColumnMap(map ?? []), stated };
  if (preview === true) {
    const { template } = context.config.outreach;
    const { previewRecipients } = await import("../../recipients/file/preview-columns-and-dates.ts");
    const found = previewRecipients(input, read, { ...options, fields: template && fieldsUsed(template) });
    return await previewFile(terminal, found, context, json);
  }
  const { parseRecipients } = await import("../../recipients/parse-imported-lists.ts");
  const { rows, refused, duplicates, notes } = parseRecipients(input, read, options);
  const { signal } = terminal;
  const imported = await withProgress(terminal, "importing", rows.length, (onProgress) =>
    importRecipients(context, rows, COMMAND_METADATA, { chunkRows: CHUNK_ROWS, signal, onProgress }),
  );
  const { taken, added, withoutConsent, withoutEvidence, revoked, fields } = imported;
  if (taken < rows.length) return reportInterruption(terminal, rows, taken);
  const updated = rows.length - added;
  const without = { without_consent: withoutConsent, without_evidence: withoutEvidence };
  const doubled = { duplicates: duplicates.length, duplicate_rows: duplicates };
  const told = { ...without, revoked, template_fields: fields, ...toRefusedJson(refused), ...doubled };
  const report = { added, updated, ...told, ...toNotes(notes) };
  const text =
    `${added} added, ${updated} updated, ${refused.length} refused\n` +
    consentLines(imported, context.config.outreach) +
    fieldsLine(fields) +
    noteLines(notes) +
    duplicates.map(({ line, of }) => `line ${line}: the same person as line ${of}; the later row counts\n`).join("");
  answer(terminal, json, report, text);
  return reportRefused(terminal, json, refused);
}

/** Shows what the import would do, and writes nothing. Returns the exit code. */
async function previewFile(
  terminal: Terminal,
  { rows, refused, preview }: ReturnType<typeof previewRecipients>,
  { projector, config }: ImportContext & { readonly config: Config },
  json: true | undefined,
): Promise<number> {
  const { template } = config.outreach;
  const found = await inTimeSlices(previewImport(() => projector.state("contacts"), rows, template));
  const { finished, ...counts } = found;
  const text =
    `${counts.added} new, ${counts.updated} updated, ${counts.unchanged} unchanged, ${refused.length} refused\n` +
    preview.columns
      .map(({ name, column }) => `${printable(name)}: ${column === null ? "left out" : printable(column)}\n`)
      .join("") +
    (preview.fault === undefined ? "" : `no row can be imported: ${printable(preview.fault)}\n`);
  answer(terminal, json, { ...preview, ...counts, finished, ...toRefusedJson(refused) }, text);
  return reportRefused(terminal, json, refused);
}

export const importFormatOption = () =>
  new Option("--format <name>", "the file's format, if its name does not say (stdin: csv)").choices(RECIPIENTS_FORMATS);

export const datesOption = () =>
  new Option("--dates <order>", "the order of day and month in dates such as 3/2/2026").choices(DATE_ORDERS);

type Notes = ReturnType<typeof parseRecipients>["notes"];

/** Converts notes about cells (changed when they were read, or suspicious) to members of the JSON answer. */
export function toNotes({ count, first }: Notes) {
  return { noted_cells: count, notes: first };
}

/** Formats notes about cells as lines for a terminal. Empty if there are none. */
export function noteLines({ count, first }: Notes): string {
  const more = count - first.reduce((sum, note) => sum + note.count, 0);
  const rest = more === 0 ? "" : `${more} more cells were read differently than written\n`;
  return first.map((note) => `${printable(describeCellNote(note))}\n`).join("") + rest;
}

/** Converts the rows that an import refused to JSON, under the names that the HTTP API uses. */
export function toRefusedJson(refused: readonly RefusedRow[]) {
  return { refused: refused.length, refused_rows: refused };
}

/**
 * Lists the rows that an import refused, unless the answer holds them already because of `--json`. Returns the exit
 * code.
 */
export function reportRefused({ err }: Terminal, json: true | undefined, refused: readonly RefusedRow[]): number {
  if (json !== true) for (const { line, reason } of refused) err(`line ${line}: ${printable(reason)}\n`);
  return refused.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Writes how many rows an interrupted import has recorded. Returns the exit code. */
export function reportInterruption(
  { err, signal }: Terminal,
  rows: readonly { line: number }[],
  taken: number,
): number {
  const last = rows[taken - 1];
  const upTo = last === undefined ? "" : `, up to line ${last.line}`;
  err(`interrupted: ${taken} of ${rows.length} rows were imported${upTo}; run the import again for the rest\n`);
  return Number(signal.reason);
}

/** Maximum number of column names that an import lists, because in a JSON file each object may have other ones. */
const NAMED_MAX = 50;

/**
 * Formats warnings about imported recipients whose consent is revoked, missing or without evidence. Empty if there are
 * none.
 */
function consentLines(
  { withoutConsent, withoutEvidence, revoked }: Imported,
  { requireConsent }: Config["outreach"],
): string {
  const then =
    requireConsent === false
      ? "and get messages anyway, since REQUIRE_CONSENT is false"
      : `and get no message while REQUIRE_CONSENT is ${requireConsent} (see basis in the help)`;
  const none = `${withoutConsent} of them without consent: their basis is none or missing, ${then}\n`;
  const unproved = `${withoutEvidence} of them without evidence: consent_at or consent_source is missing, ${then}\n`;
  const taken = revoked === 0 ? "" : `${revoked} of them had consent before: the file revokes it by the basis none\n`;
  return (
    taken +
    (withoutConsent === 0 ? "" : none) +
    (withoutEvidence === 0 || requireConsent !== "evidence" ? "" : unproved)
  );
}

/** Formats the line that names the columns which became template fields. Empty if there are none. */
function fieldsLine(names: readonly string[]): string {
  if (names.length === 0) return "";
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : "";
  return `template fields: ${names.slice(0, NAMED_MAX).map(printable).join(", ")}${more}\n`;
}

const STDIN = "-";

/**
 * Returns the requested format of an import file; by default that of the file name's ending, or CSV for stdin. Throws a
 * ServiceError (usage) for another ending.
 */
export function chooseFormat(path: string, given: RecipientsFormat | undefined): RecipientsFormat {
  if (given !== undefined) return given;
  if (path === STDIN) return "csv";
  const format = formatOfName(path);
  if (format === "workbook") {
    throw usageError(`${printable(path)} is a workbook: save it as CSV ("CSV UTF-8") and import that`);
  }
  if (format === undefined) {
    throw usageError("the import needs a file that ends in .csv, .json or .jsonl, or --format");
  }
  return format;
}

/** Returns the bytes of the import file; `-` stands for stdin. Throws a ServiceError (invalid) if stdin is too long. */
export async function readInput(path: string): Promise<Uint8Array> {
  if (path !== STDIN) return withPath(path, () => readFileSync(path));
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > FILE_BYTES_MAX) throw new ServiceError("invalid", `stdin has more than ${FILE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
