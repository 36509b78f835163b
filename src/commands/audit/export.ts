import type { EventStore } from "eventstore-lite";
import type { EncryptedLog } from "../../privacy/encrypted-log.ts";
import { configOf, EXIT, parse, UsageError, type Terminal } from "../command.ts";
import { FORMATS, isFormat, type Format } from "../export-formats.ts";
import type { ShownEvent, StoredEvent } from "../export-formats/format.ts";
import { openExistingLog, openStoredLog } from "../log-session.ts";
import { makeNewFile } from "../new-file.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../table.ts";
import { writeText } from "../write.ts";
import type { AuditAction } from "./action.ts";

export const exportAction: AuditAction = {
  usage: "export [--format jsonl|csv|cloudevents] [--out FILE] [--sealed]",
  help: `export   writes all events, one a line; for csv, cells that a spreadsheet would
         run as formulas begin with an apostrophe. Personal data is written openly
         (erased where its key is gone), beside the data as it is stored, which the
         hashes cover. With --sealed only the latter: it needs no keys, and whoever
         has none can read nothing personal in it. FILE has its name only once it is
         whole; a FILE.*.partial is left of an export that was killed
`,
  async run(args, terminal) {
    const { values } = parse(args, {
      format: { type: "string", default: "jsonl" },
      out: { type: "string" },
      sealed: { type: "boolean", default: false },
    });
    if (!isFormat(values.format)) throw new UsageError(`--format wants ${Object.keys(FORMATS).join(", ")}`);
    await using source = await openSource(terminal, values.sealed);
    if (values.out !== undefined) return await exportToFile(source, terminal, values.format, values.out);
    await exportLog(source, terminal, values.format, terminal.out);
    return EXIT.ok;
  },
};

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
      exportLog(source, terminal, format, (text) => {
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

async function exportLog(
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
