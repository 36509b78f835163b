import { closeSync, openSync, rmSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { configOf, EXIT, parse, UsageError, type Terminal } from "../command.ts";
import { FORMATS, isFormat, type Format } from "../export-formats.ts";
import { openExistingLog } from "../log-session.ts";
import { startProgress } from "../progress.ts";
import { writeAll } from "../write.ts";
import type { AuditAction } from "./action.ts";

export const exportAction: AuditAction = {
  usage: "export [--format jsonl|csv|cloudevents] [--out FILE]",
  help: `export   writes all events as they are stored, one a line; for csv, cells that
         a spreadsheet would run as formulas begin with an apostrophe
`,
  async run(args, terminal) {
    const { values } = parse(args, { format: { type: "string", default: "jsonl" }, out: { type: "string" } });
    if (!isFormat(values.format)) throw new UsageError(`--format wants ${Object.keys(FORMATS).join(", ")}`);
    await using store = await openExistingLog(configOf(terminal));
    if (values.out === undefined) await exportLog(store, terminal, values.format, terminal.out);
    else await exportToFile(store, terminal, values.format, values.out);
    return EXIT.ok;
  },
};

/** Characters written at once: more are not faster, and a slow reader holds back the next read. */
const WRITE_CHARS = 64 * 1024;

/** The log is full of personal data: the file is its owner's alone. An existing one is not overwritten. */
async function exportToFile(store: EventStore<Event>, terminal: Terminal, format: Format, file: string): Promise<void> {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    await exportLog(store, terminal, format, (text) => writeAll(descriptor, text));
  } catch (fault) {
    // Half an export would pass for a whole one.
    rmSync(file, { force: true });
    throw fault;
  } finally {
    closeSync(descriptor);
  }
}

async function exportLog(
  store: EventStore<Event>,
  terminal: Terminal,
  format: Format,
  write: (text: string) => void,
): Promise<void> {
  const { head, line } = FORMATS[format];
  const { position } = await store.head();
  const progress = startProgress(terminal, "exporting", position);
  let buffer = head;
  for await (const event of store.readStored({ to: position })) {
    buffer += line(event);
    if (buffer.length < WRITE_CHARS) continue;
    write(buffer);
    buffer = "";
    progress.update(event.position);
  }
  write(buffer);
  progress.end();
}
