import type { LogStore } from "../../../events/event-types-and-codec.ts";
import { Command, Option, readConfig, type MakeCommand } from "../shared/command.ts";
import type { Terminal } from "../shared/terminal-answers-and-exit-codes.ts";
import { toSelection, type LogFilter } from "../../history/log-filter.ts";
import { storedEvents, type Selection } from "../../history/select-events.ts";
import { EXPORT_FORMATS, FORMAT_NAMES } from "../../log/export-formats.ts";
import { exportText, shownBy, type Show } from "../../log/export-formats/write-export-text.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { discloseRecipient, type PersonalRead } from "../../privacy/record-personal-data-read.ts";
import { foldTo } from "../../projector/fold-to-moment.ts";
import { openExistingLog, openExistingStoredLog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { writeNewFile } from "../shared/write-text-and-new-files.ts";
import { startProgress } from "../shared/progress.ts";
import { usageError } from "../../platform/service-error.ts";

export const exportLog: MakeCommand = (terminal) =>
  new Command("export")
    .summary("write all events, or those that match, one per line")
    .description(
      `Writes all events, or those that match all options, one per line. Personal data
is decrypted (or shown as erased, if its key was deleted) and written next to the
stored data, which the hashes cover. A CSV begins with a byte order mark, and an
apostrophe precedes each cell that a spreadsheet would run as a formula. A killed
export leaves a FILE.*.partial. Only a jsonl export of all events can be imported.`,
    )
    .addOption(new Option("--format <name>", "the file's format").choices(FORMAT_NAMES).default("jsonl" as const))
    .option("--out <file>", "a new file, which gets its name only once it is complete; default: stdout")
    .option("--encrypted", "only the stored data: needs no keys, and personal data stays encrypted")
    .option("--type <names>", "only events of these types, separated by commas", (text) => text.split(","))
    .option("--stream <name>", "only events of this stream")
    .option("--recipient <name>", "only what happened to this recipient: an id or a handle")
    .option("--link <link>", "only clicks of this link: domain/short_code")
    .option("--run <id>", "only events of this run")
    .option("--from <moment>", "from this position, day or time on")
    .option("--to <moment>", "up to this position, day or time")
    .examples("reachlog audit export --format csv --out log.csv")
    .action(async ({ format, out, encrypted, type: types, ...others }) => {
      const filter = types === undefined ? others : { ...others, types };
      if (encrypted === true && filter.recipient !== undefined) {
        throw usageError(
          "--encrypted decrypts nothing, so it cannot find a recipient: omit --recipient or --encrypted",
        );
      }
      await using opened = encrypted === true ? undefined : await openExistingLog(terminal);
      await using stored = opened === undefined ? await openExistingStoredLog(terminal) : undefined;
      const store = opened ?? stored!;
      const selection = await select(terminal, store, filter);
      if (opened !== undefined) await recordRead(terminal, opened, toExportRead(selection, filter));
      const show: Show = opened === undefined ? (events) => events : shownBy(opened.open);
      const events = storedEvents(store, selection, show);
      const { position } = await store.head();
      return await writeNewFile(terminal, out, async (write) => {
        const progress = startProgress(terminal, "exporting", position);
        for await (const chunk of exportText(events, EXPORT_FORMATS[format])) {
          write(chunk.text);
          progress.update(chunk.position);
        }
        progress.end();
      });
    });

function toExportRead({ recipient }: Selection, filter: LogFilter): PersonalRead {
  const filters = Object.keys(omitUndefined(filter)).map((name) => (name === "types" ? "type" : name));
  return {
    resource: "export",
    ...(filters.length === 0 ? {} : { filters }),
    ...discloseRecipient(recipient),
  };
}

async function select(terminal: Terminal, store: LogStore, filter: LogFilter): Promise<Selection> {
  const { position } = await store.head();
  const { timezone } = readConfig(terminal).outreach;
  const contacts = async () => (await foldTo(store, ["contacts"], { to: position })).states.contacts;
  return toSelection(filter, { store, contacts, timezone, position });
}
