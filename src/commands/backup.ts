import type { Config } from "../config/config.ts";
import { isS3Address } from "../networks/s3/address.ts";
import { systemClock } from "../platform/clock.ts";
import { usageError } from "../platform/service-error.ts";
import { keysMissing, missingKeys } from "../privacy/missing-keys.ts";
import { locateLog } from "../service/log-place.ts";
import { openLog } from "../service/open.ts";
import { nameOfKey } from "../vault/master-key.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { readSettled, verifyIncrements } from "./backup/from-increments.ts";
import { readIncrements } from "./backup/increments-manifest.ts";
import { backupPlace, refuseArchive, withoutSlash } from "./backup/backup-place.ts";
import { openIncrements, writeRemoteIncrement } from "./backup/remote-increments.ts";
import { recordBackup, writeBackup, type WriteOptions, type BackupSource } from "./backup/write-backup.ts";
import { type Increment, writeIncrement } from "./backup/write-increment.ts";
import { Command, JSON_OPTION, type MakeCommand, readConfig } from "./shared/command.ts";
import { loadMasterKey } from "./restore.ts";
import { answer, EXIT, fail, type Terminal } from "./shared/terminal.ts";
import { refuseNoLog } from "./shared/log-session.ts";
import { temporaryFolder } from "./shared/new-file.ts";
import { withProgress } from "./shared/progress.ts";

export const backup: MakeCommand = (terminal) =>
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
    .argument("<folder>", "a new folder, readable by its owner only; nothing is ever overwritten", backupPlace)
    .option("--incremental", "add to the folder what is new since the last backup there; see below")
    .option("--verify", "prove that the incremental backups of the folder can be restored; writes nothing")
    .option(...JSON_OPTION)
    .examples(
      "reachlog backup /mnt/backup/monday",
      "reachlog backup /mnt/backup/all --incremental",
      "reachlog backup s3://my-bucket/reachlog --incremental",
    )
    .addHelpText(
      "after",
      `
With --incremental, the first backup makes the folder, and all later ones add to
it. Each seals the events since the one before in a compressed file that is
never written again, and replaces keys, vault, head and manifest. reachlog
restore restores any of them, or any moment of the log. The folder belongs to
one log and one master key: after a rollback or a key rotation, name another
folder. It is refused if it holds other files, contains ARCHIVE_FOLDER or lies
in it.

Run --verify on a schedule: it names each missing or altered file while the log
is still there to make a new backup. It needs the master key, as reachlog
restore does. restore --rehearse tries one backup, of either kind, in full.

In place of a folder, incremental backups take s3://BUCKET/PREFIX, a place in an
S3-compatible store: see AWS_ACCESS_KEY_ID in .env.example.

Exit code 1 if keys that the log names are missing (with --incremental: that its
new events name; doctor looks at all). The folder is written; what
they encrypted reads as erased, in the backup as in the log.

Keep few backups, and only young ones: a backup holds the keys of people who are
erased later. You may delete a FOLDER.*.partial: a killed backup leaves it.`,
    )
    .action(async (folder, { incremental = false, verify = false, json }) => {
      const config = readConfig(terminal);
      if (verify) return verifyFolder(terminal, config, folder, json);
      const { secrets, store } = locateLog(config);
      const write = chooseWriter(config, folder, incremental);
      if (incremental) refuseArchive(folder, config);
      await refuseNoLog(config);
      await using log = await openLog(config);
      const made = await withProgress(terminal, "verifying", (await log.head()).position, (onProgress) =>
        write({ log, secrets }, folder, { clock: systemClock, onProgress }),
      );
      await recordBackup(terminal, "BackupMade", made, store);
      const { length: missing_keys } = await missingKeys(log, log.keyring, log.logClock.now(), made.first);
      const { position, hash } = made.log;
      const { bytes, number } = made;
      const which = number === undefined ? folder : `${folder}, backup ${number}`;
      const text = `${which}: ${position} events, the chain is whole; head ${position} ${hash}; ${bytes} bytes\n`;
      answer(terminal, json, { folder, ...omitUndefined({ number }), position, hash, bytes, missing_keys }, text);
      if (json !== true) terminal.err(`the master key is not in it: ${nameOfKey(secrets)}\n`);
      if (missing_keys === 0) return undefined;
      const remedy = "reachlog restore takes this backup with --accept-lost-keys only";
      return fail(terminal, `${keysMissing(missing_keys)}; ${remedy}`);
    });

/** What writes the backup that was asked for. Throws a ServiceError (usage). */
function chooseWriter(config: Config, folder: string, incremental: boolean): typeof writeWhole {
  if (!isS3Address(folder)) return incremental ? writeIncrement : writeWhole;
  if (incremental) return writeRemoteIncrement.bind(undefined, config);
  throw usageError(`${folder} takes --incremental backups only`);
}

async function writeWhole(source: BackupSource, folder: string, options: WriteOptions): Promise<Increment> {
  const { log: copied, made_at, files } = await writeBackup(source, folder, options);
  const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
  return { log: copied, made_at, bytes, number: undefined, first: 1 };
}

async function verifyFolder(terminal: Terminal, config: Config, place: string, json: boolean | undefined) {
  const master = loadMasterKey(config);
  using copy = await openIncrements(place, config, master);
  const { folder } = copy;
  const { position } = readIncrements(folder, master).backups.at(-1)!;
  using scratch = temporaryFolder("reachlog-verify-");
  const { increments, faults: found } = await withProgress(terminal, "verifying", position, (onProgress) =>
    readSettled(
      folder,
      () => verifyIncrements(folder, master, { scratch: scratch.path, onProgress }),
      ({ faults }) => faults.length === 0,
    ),
  );
  const { backups, segments } = increments;
  const { hash } = backups.at(-1)!;
  const faults = found.map((sentence) => sentence.replaceAll(folder, withoutSlash(place)));
  const whole = `${place}: ${backups.length} backups in ${segments.length} segments are whole; head ${position} ${hash}`;
  const ok = faults.length === 0;
  const figures = { folder: place, ok, backups: backups.length, segments: segments.length, position, hash, faults };
  answer(terminal, json, figures, (ok ? [whole] : faults).map((sentence) => `${sentence}\n`).join(""));
  return ok ? EXIT.ok : EXIT.fault;
}
