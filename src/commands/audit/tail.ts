import type { Recorded } from "../../../events/catalog.ts";
import { Command, configOf, EXIT, usageError, type MakeCommand } from "../command.ts";
import { FORMATS } from "../../log/export-formats.ts";
import { openExistingLog } from "../log-session.ts";
import { printable } from "../table.ts";

/** Events of the past shown before the live ones. */
const TAIL_EVENTS = 20;

export const tail: MakeCommand = (terminal, exit) =>
  new Command("tail")
    .summary("print the newest events and follow the log until interrupted")
    .option("--from <position>", "begin there; without it, with the newest events", positionOf)
    .option("--json", "write each event as a JSON object")
    .addHelpText("after", "\nExample:\n  reachlog audit tail --from 1")
    .action(
      exit(async ({ from, json }) => {
        await using store = await openExistingLog(configOf(terminal));
        const { position } = await store.head();
        const start = from ?? Math.max(1, position - TAIL_EVENTS + 1);
        for await (const event of store.subscribe({ from: start, signal: terminal.signal })) {
          terminal.out(json === true ? FORMATS.jsonl.line(event) : lineOf(event));
        }
        return EXIT.ok;
      }),
    );

function positionOf(text: string): number {
  if (!/^\d+$/.test(text)) throw usageError("--from wants a position");
  return Number(text);
}

function lineOf({ position, time, type, stream, data }: Recorded): string {
  return `${position} ${time} ${type} ${printable(stream)} ${printable(JSON.stringify(data))}\n`;
}
