import type { Recorded } from "../../../events/catalog.ts";
import { configOf, EXIT, parse, UsageError } from "../command.ts";
import { FORMATS } from "../export-formats.ts";
import { openExistingLog } from "../log-session.ts";
import { printable } from "../table.ts";
import type { AuditAction } from "./action.ts";

/** Events of the past shown before the live ones. */
const TAIL_EVENTS = 20;

export const tail: AuditAction = {
  usage: "tail [--from POSITION] [--json]",
  help: `tail     prints the newest events and follows the log until interrupted
`,
  async run(args, terminal) {
    const { values } = parse(args, { json: { type: "boolean", default: false }, from: { type: "string" } });
    const { from, json } = values;
    if (from !== undefined && !/^\d+$/.test(from)) throw new UsageError("--from wants a position");
    await using store = await openExistingLog(configOf(terminal));
    const { position } = await store.head();
    const start = from === undefined ? Math.max(1, position - TAIL_EVENTS + 1) : Number(from);
    for await (const event of store.subscribe({ from: start, signal: terminal.signal })) {
      terminal.out(json ? FORMATS.jsonl.line(event) : lineOf(event));
    }
    return EXIT.ok;
  },
};

function lineOf({ position, time, type, stream, data }: Recorded): string {
  return `${position} ${time} ${type} ${printable(stream)} ${printable(JSON.stringify(data))}\n`;
}
