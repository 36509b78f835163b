import { closeSync, openSync, writeSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { configOf, EXIT, parse, UsageError, type Command, type Terminal } from "./command.ts";
import { FORMATS, isFormat, type Format } from "./export-formats.ts";
import { openExistingLog } from "./log-session.ts";
import { startProgress } from "./progress.ts";
import { printable } from "./table.ts";

export const audit: Command = {
  summary: "verify, follow or export the event log",
  help: `reachlog audit verify [--json]
reachlog audit tail [--from POSITION] [--json]
reachlog audit export [--format jsonl|csv|cloudevents] [--out FILE]

verify   recomputes the hash chain; names the first event that does not fit and
         exits with 1
tail     prints the newest events and follows the log until interrupted
export   writes all events, one a line; for csv, cells that a spreadsheet would
         run as formulas are quoted

All of them work beside a running service.
`,
  async run(args, terminal) {
    const { values, positionals } = parse(args, {
      json: { type: "boolean", default: false },
      from: { type: "string" },
      format: { type: "string", default: "jsonl" },
      out: { type: "string" },
    });
    const [action] = positionals;
    if (action !== "verify" && action !== "tail" && action !== "export") {
      throw new UsageError("audit wants verify, tail or export");
    }
    await using store = await openExistingLog(configOf(terminal));
    if (action === "verify") return await verify(store, terminal, values.json);
    if (action === "tail") return await tail(store, terminal, values.from, values.json);
    if (!isFormat(values.format)) throw new UsageError(`--format wants ${Object.keys(FORMATS).join(", ")}`);
    return await exportLog(store, terminal, values.format, values.out);
  },
};

async function verify(store: EventStore<Event>, terminal: Terminal, json: boolean): Promise<number> {
  const { position } = await store.head();
  const progress = startProgress(terminal, "verifying", position);
  const { ok, checked, head, fault } = await store.verify({ onProgress: progress.update });
  progress.end();
  if (json) terminal.out(`${JSON.stringify({ ok, checked, head, fault: fault ?? null })}\n`);
  else if (fault === undefined)
    terminal.out(`${checked} events, the chain is whole; head ${head.position} ${head.hash}\n`);
  else terminal.out(`the chain is broken at position ${fault.position}: ${fault.reason}\n`);
  return ok ? EXIT.ok : EXIT.fault;
}

/** Events of the past shown before the live ones. */
const TAIL_EVENTS = 20;

async function tail(
  store: EventStore<Event>,
  terminal: Terminal,
  from: string | undefined,
  json: boolean,
): Promise<number> {
  if (from !== undefined && !/^\d+$/.test(from)) throw new UsageError("--from wants a position");
  const { position } = await store.head();
  const start = from === undefined ? Math.max(1, position - TAIL_EVENTS + 1) : Number(from);
  for await (const event of store.subscribe({ from: start, signal: terminal.signal })) {
    terminal.out(json ? FORMATS.jsonl.line(event) : told(event));
  }
  return EXIT.ok;
}

function told({ position, time, type, stream, data }: Recorded): string {
  return `${position} ${time} ${type} ${printable(stream)} ${printable(JSON.stringify(data))}\n`;
}

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
