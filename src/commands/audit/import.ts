import { importEvents } from "../../backup/import-events.ts";
import { Command, JSON_OPTION, readConfig, type MakeCommand } from "../shared/command.ts";
import { monitorOn } from "../shared/progress.ts";
import { answer } from "../shared/terminal.ts";

export const importLog: MakeCommand = (terminal) =>
  new Command("import")
    .summary("create a log from a file that export wrote")
    .description(
      `Creates the log of DATABASE_URL, which must be missing or empty, from a file that
export wrote as jsonl, with the same positions, times and hashes. Every event is
checked, and nothing is imported unless all of them fit. Compare the head that it
prints with that of the log exported: a file that was cut off between two lines is
whole in itself.

The vault, the keys of personal data and the master key are not in an export:
bring them along. Without the keys nothing personal can be read. Idempotency keys
are not in it either: see docs/upgrade.md. A service treats the new log as a
restored one, so its first day has no run.`,
    )
    .argument("<file>", "what export wrote, or - for stdin")
    .option("--take-over-keys", "with vault and keys of a log that is gone for good; a service of it ends")
    .option(...JSON_OPTION)
    .examples("reachlog audit import log.jsonl")
    .action(async (path, { json, takeOverKeys }) => {
      const file = { path, takeOverKeys: takeOverKeys === true };
      const { position, hash } = await importEvents(readConfig(terminal), file, monitorOn(terminal));
      answer(terminal, json, { position, hash }, `${position} events imported; head ${position} ${hash}\n`);
    });
