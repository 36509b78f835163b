import { exportSuppressions, SUPPRESSIONS_FORMATS } from "../../recipients/export-suppressions.ts";
import { REASON_CHARS_MAX } from "../../recipients/file/suppression-row.ts";
import { importSuppressions } from "../../recipients/import-suppressions.ts";
import { nameHashKey } from "../../recipients/suppress.ts";
import { createSuppressionHashes } from "../../privacy/suppression-hashes.ts";
import {
  chooseFormat,
  CHUNK_ROWS,
  datesOption,
  type ImportFileOptions,
  importFormatOption,
  noteLines,
  readInput,
  reportInterruption,
  reportRefused,
  toNotes,
  toRefusedJson,
} from "./import.ts";
import { Command, group, JSON_OPTION, Option, readConfig, type MakeCommand } from "../shared/command.ts";
import { COMMAND_METADATA, openExistingLog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { openReachlog } from "../../service/open-reachlog.ts";
import { contactsNow } from "../shared/as-of-option.ts";
import { writeNewFile } from "../shared/write-text-and-new-files.ts";
import { withProgress } from "../shared/progress.ts";
import { answer, type Terminal } from "../shared/terminal-answers-and-exit-codes.ts";

const importList: MakeCommand = (terminal) =>
  new Command("import")
    .summary("suppress the recipients of a list")
    .description(
      `Columns of a file: id, username (or handle) and/or hash, reason, suppressed_at. A
row has at least one of the first three. A hash comes from an export of this log, or
of a log that was restored or migrated from it; it names no recipient. reason is
by_hand, opt_out, opt_out_page, or any text of up to ${REASON_CHARS_MAX} characters, and suppressed_at
the day or time (ISO 8601) of the suppression elsewhere: the log keeps both. A
recipient who is already suppressed keeps the first record. Refused rows are listed
with line and reason; the others are imported, and the exit code is 1. An
interrupted import names the last imported line; run it again to import the rest.`,
    )
    .argument("<file>", "a .csv, .json or .jsonl; - for stdin")
    .addOption(importFormatOption())
    .addOption(datesOption())
    .option(...JSON_OPTION)
    .examples("reachlog suppressions import unsubscribed.csv")
    .action((path, options) => importFile(terminal, path, options));

async function importFile(
  terminal: Terminal,
  path: string,
  { format, dates, json }: ImportFileOptions,
): Promise<number> {
  const chosen = chooseFormat(path, format);
  const input = await readInput(path);
  await using context = await openReachlog(readConfig(terminal));
  const { logClock, hashesOf } = context;
  const options = { now: logClock.now(), dates };
  const { parseSuppressions } = await import("../../recipients/parse-imported-lists.ts");
  const { rows, refused, notes } = parseSuppressions(input, chosen, options, nameHashKey(hashesOf));
  const { signal } = terminal;
  const { taken, added } = await withProgress(terminal, "importing", rows.length, (onProgress) =>
    importSuppressions(context, rows, COMMAND_METADATA, { chunkRows: CHUNK_ROWS, signal, onProgress }),
  );
  if (taken < rows.length) return reportInterruption(terminal, rows, taken);
  const report = { added, repeated: taken - added, ...toRefusedJson(refused), ...toNotes(notes) };
  const text = `${added} added, ${report.repeated} suppressed before, ${refused.length} refused\n${noteLines(notes)}`;
  answer(terminal, json, report, text);
  return reportRefused(terminal, json, refused);
}

const exportList: MakeCommand = (terminal) =>
  new Command("export")
    .summary("write the list of suppressions")
    .description(
      `Writes all suppressions with reason and date, as an import reads them. A recipient
is written by name if the log knows the name. All others, forgotten ones included,
are written as a hash, which matches only in a log with the same key. A CSV
begins with a byte order mark, and an apostrophe precedes each cell that a
spreadsheet would run as a formula; an import removes both.`,
    )
    .addOption(new Option("--format <name>", "the file's format").choices(SUPPRESSIONS_FORMATS).default("csv" as const))
    .option("--out <file>", "a new file, which gets its name only once it is complete; default: stdout")
    .option("--hashed", "write all as hashes, which name no recipient; reason texts of lists stay")
    .examples("reachlog suppressions export --hashed --out suppressed.csv")
    .action(async ({ format, out, hashed }) => {
      await using log = await openExistingLog(terminal);
      const hashesOf = createSuppressionHashes(await log.vault.stableKey("suppression"));
      const { states, position: to } = await contactsNow(log);
      await recordRead(terminal, log, { resource: "suppressions" });
      const options = { contacts: states.contacts, to, hashesOf, format, isHashed: hashed === true };
      return await writeNewFile(terminal, out, async (write) => {
        for await (const { text } of exportSuppressions(log, options)) write(text);
      });
    });

export const suppressions = group(
  "suppressions",
  "import or export the list of suppressions",
  [importList, exportList],
  "Both work beside a running service.",
);
