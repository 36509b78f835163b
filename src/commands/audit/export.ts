import { closeSync, openSync, writeSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { configOf, EXIT, parse, UsageError, type Terminal } from "../command.ts";
import { FORMATS, isFormat, type Format } from "../export-formats.ts";
import { openExistingLog } from "../log-session.ts";
import { startProgress } from "../progress.ts";
import type { AuditAction } from "./action.ts";

export const exportAction: AuditAction = {
  usage: "export [--format jsonl|csv|cloudevents] [--out FILE]",
  help: `export   writes all events, one a line; for csv, cells that a spreadsheet would
         run as formulas are quoted
`,
  async run(args, terminal) {
    const { values } = parse(args, { format: { type: "string", default: "jsonl" }, out: { type: "string" } });
    if (!isFormat(values.format)) throw new UsageError(`--format wants ${Object.keys(FORMATS).join(", ")}`);
    await using store = await openExistingLog(configOf(terminal));
    return await exportLog(store, terminal, values.format, values.out);
  },
};

/** Lines written at once. */
const WRITE_CHARS = 64 * 1024;

async function exportLog(
  store: EventStore<Event>,
  terminal: Terminal,
  format: Format,
  file: string | undefined,
): Promise<number> {
  const { position } = await store.head();
  // The log is full of personal data: a new file is its owner's alone, an existing one is not overwritten.
  const handle = file === undefined ? undefined : openSync(file, "wx", 0o600);
  const write = (text: string): void => {
    if (handle === undefined) terminal.out(text);
    else writeSync(handle, text);
  };
  const progress = startProgress(terminal, "exporting", position);
  let buffer = FORMATS[format].head;
  for await (const event of store.read({ to: position })) {
    buffer += FORMATS[format].line(event);
    if (buffer.length < WRITE_CHARS) continue;
    write(buffer);
    buffer = "";
    progress.update(event.position);
  }
  write(buffer);
  progress.end();
  if (handle !== undefined) closeSync(handle);
  return EXIT.ok;
}
