import { systemClock } from "../platform/clock.ts";
import { keysMissing, missingKeys } from "../privacy/missing-keys.ts";
import { locateLog } from "../service/log-place.ts";
import { openLog } from "../service/open.ts";
import { nameOfKey } from "../vault/master-key.ts";
import { recordBackup, writeBackup } from "./backup/write-backup.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand, readConfig } from "./shared/command.ts";
import { answer, fail } from "./shared/terminal.ts";
import { refuseNoLog } from "./shared/log-session.ts";
import { withProgress } from "./shared/progress.ts";

export const backup: MakeCommand = (terminal, exit) =>
  new Command("backup")
    .summary("copy log, vault and keys beside a running service, and check it")
    .description(
      `Writes a folder beside a running service: a copy of the log at one moment, the vault,
the keys of personal data, and a signed head. A log on PostgreSQL becomes files too.
The command checks the whole copy: SQLite's integrity, and the hash chain. The folder
gets its name only once it is whole. The log records it (BackupMade). The command
prints the log's position, head hash and size. Store the first two elsewhere, so
that you notice if an older backup replaces the folder.

The backup does not hold the master key, without which its encrypted data cannot be
opened: keep reachlog.key or REACHLOG_KEY apart. reachlog restore proves a backup
and restores it.`,
    )
    .argument("<folder>", "a new folder, readable by its owner only; nothing is ever overwritten", absolutePath)
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      `
Example:
  reachlog backup /mnt/backup/monday

Exit code 1 if keys that the log names are missing. The folder is written; what
they encrypted reads as erased, in the backup as in the log.

Keep few backups, and only young ones: a backup holds the keys of people who are
erased later. You may delete a FOLDER.*.partial: a killed backup leaves it.`,
    )
    .action(
      exit(async (folder, { json }) => {
        const config = readConfig(terminal);
        const { secrets, store } = locateLog(config);
        await refuseNoLog(config);
        await using log = await openLog(config);
        const made = await withProgress(terminal, "verifying", (await log.head()).position, (onProgress) =>
          writeBackup(log, secrets, folder, { clock: systemClock, onProgress }),
        );
        await recordBackup(terminal, "BackupMade", made, store);
        const { length: missing_keys } = await missingKeys(log, log.keyring, log.logClock.now());
        const { position, hash } = made.log;
        const bytes = Object.values(made.files).reduce((sum, file) => sum + file.bytes, 0);
        const text = `${folder}: ${position} events, the chain is whole; head ${position} ${hash}; ${bytes} bytes\n`;
        answer(terminal, json, { folder, position, hash, bytes, missing_keys }, text);
        if (json !== true) terminal.err(`the master key is not in it: ${nameOfKey(secrets)}\n`);
        if (missing_keys === 0) return undefined;
        const remedy = "reachlog restore takes this backup with --accept-lost-keys only";
        return fail(terminal, `${keysMissing(missing_keys)}; ${remedy}`);
      }),
    );
