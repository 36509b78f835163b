import type { EventStore } from "eventstore-lite";
import { Command, configOf, EXIT, type MakeCommand, type Terminal } from "../command.ts";
import { allUpTo, storedEvents } from "../../history/selection.ts";
import { FORMATS, type Format } from "../../log/export-formats.ts";
import type { ShownEvent, StoredEvent } from "../../log/export-formats/format.ts";
import { exportText, shownBy } from "../../log/export-text.ts";
import { formatOption } from "../format-option.ts";
import { openExistingLog, openStoredLog } from "../log-session.ts";
import { makeNewFile } from "../new-file.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../table.ts";
import { writeText } from "../write.ts";

export const exportLog: MakeCommand = (terminal, exit) =>
  new Command("export")
    .summary("write all events, one a line")
    .description(
      `Writes all events, one a line. Personal data is written openly (erased where its
key is gone), beside the data as it is stored, which the hashes cover. In a CSV,
cells that a spreadsheet would run as formulas begin with an apostrophe. A
FILE.*.partial is left of an export that was killed.`,
    )
    .addOption(formatOption())
    .option("--out <file>", "a new file, which has its name only once it is whole; without it, stdout")
    .option("--sealed", "only the data as it is stored: needs no keys, and nobody without them reads anything personal")
    .addHelpText("after", "\nExample:\n  reachlog audit export --format csv --out log.csv")
    .action(
      exit(async ({ format, out, sealed }) => {
        await using source = await openSource(terminal, sealed === true);
        if (out !== undefined) return await exportToFile(source, terminal, format, out);
        await writeLog(source, terminal, format, terminal.out);
        return EXIT.ok;
      }),
    );

/** A log and how its events are shown. */
interface Source extends AsyncDisposable {
  readonly store: EventStore;
  readonly show: (event: StoredEvent) => ShownEvent;
}

async function openSource(terminal: Terminal, encrypted: boolean): Promise<Source> {
  const config = configOf(terminal);
  if (encrypted) {
    const store = await openStoredLog(config);
    return { store, show: (event) => event, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
  }
  const store = await openExistingLog(config);
  return { store, show: shownBy(store.open), [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

/** Half an export would pass for a whole one: interrupted, none is made. Answers the exit code. */
async function exportToFile(source: Source, terminal: Terminal, format: Format, file: string): Promise<number> {
  const { signal } = terminal;
  try {
    await makeNewFile(file, (descriptor) =>
      writeLog(source, terminal, format, (text) => {
        signal.throwIfAborted();
        writeText(descriptor, text);
      }),
    );
    return EXIT.ok;
  } catch (fault) {
    if (!signal.aborted || fault !== signal.reason) throw fault;
    terminal.err(`interrupted: ${printable(file)} was not made\n`);
    // The signal's reason is the code that a shell expects of it.
    return Number(signal.reason);
  }
}

async function writeLog(
  { store, show }: Source,
  terminal: Terminal,
  format: Format,
  write: (text: string) => void,
): Promise<void> {
  const { position } = await store.head();
  const progress = startProgress(terminal, "exporting", position);
  for await (const chunk of exportText(storedEvents(store, allUpTo(position), show), FORMATS[format])) {
    write(chunk.text);
    progress.update(chunk.position);
  }
  progress.end();
}
