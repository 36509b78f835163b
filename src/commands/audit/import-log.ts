import { importEvents } from "../../backup/import-exported-events.ts";
import { Command, JSON_OPTION, readConfig, type MakeCommand } from "../shared/command.ts";
import { monitorOn } from "../shared/progress.ts";
import { answer } from "../shared/terminal-answers-and-exit-codes.ts";

export const importLog: MakeCommand = (terminal) =>
  new Command("import")
    .summary("create a log from a file that export wrote")
    .description(
      `Creates the log of DATABASE_URL, which must be missing or empty, from a file that
export wrote as jsonl, with the same positions, times and hashes. Every event is
checked, and nothing is imported unless all of them are valid. Compare the printed
head with that of the exported log: a file that was cut off between two lines
passes every other check.

The vault, the keys of personal data and the master key are not in an export:
copy them too. Without the keys, personal data cannot be read. Idempotency keys
are not in it either: see docs/upgrade.md. A service treats the new log as a
restored one, so no run starts on its first day.`,
    )
    .argument("<file>", "what export wrote, or - for stdin")
    .option(
      "--take-over-keys",
      "take over vault and keys from a log that no longer exists; a service that still uses that log ends",
    )
    .option(...JSON_OPTION)
    .examples("reachlog audit import log.jsonl")
    .action(async (path, { json, takeOverKeys }) => {
      const file = { path, takeOverKeys: takeOverKeys === true };
      const { position, hash } = await importEvents(readConfig(terminal), file, monitorOn(terminal));
      answer(terminal, json, { position, hash }, `${position} events imported; head ${position} ${hash}\n`);
    });
