import type { EventStore } from "eventstore-lite";
import type { EncryptedLog } from "../../privacy/encrypted-log.ts";
import { Command, configOf, EXIT, type MakeCommand, type Terminal } from "../command.ts";
import { formatOption, FORMATS, type Format } from "../export-formats.ts";
import type { ShownEvent, StoredEvent } from "../export-formats/format.ts";
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
  return { store, show: (event) => shown(store, event), [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}

function shown(store: EncryptedLog, event: StoredEvent): ShownEvent {
  const { data } = store.open(event);
  return data === event.data ? event : { ...event, data, stored: event.data };
}

/** Characters written at once: more are not faster, and a slow reader holds back the next read. */
const WRITE_CHARS = 64 * 1024;

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
  const { head, line } = FORMATS[format];
  const { position } = await store.head();
  const progress = startProgress(terminal, "exporting", position);
  let buffer = head;
  for await (const event of store.readStored({ to: position })) {
    buffer += line(show(event));
    if (buffer.length < WRITE_CHARS) continue;
    write(buffer);
    buffer = "";
    progress.update(event.position);
  }
  write(buffer);
  progress.end();
}
