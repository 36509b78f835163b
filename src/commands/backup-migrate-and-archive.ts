import { parseBackupPlace } from "../backup/parse-backup-place.ts";
import { makeBackup, verifyBackups } from "../backup/make-or-verify-backup.ts";
import { migrateLog } from "../backup/move-log.ts";
import type { Config } from "../config/config.ts";
import { redactedUrl } from "../config/database.ts";
import { readSettingsFile } from "../config/load-env-file.ts";
import { archiveBefore } from "../log/archive-old-events.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { locateLog } from "../privacy/locate-log.ts";
import { keysMissing } from "../privacy/find-lost-keys.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand, readConfig } from "./shared/command.ts";
import { COMMAND_METADATA, requireLog } from "./shared/open-log-and-record-reads.ts";
import { monitorOn } from "./shared/progress.ts";
import { answer, EXIT, fail, type Terminal } from "./shared/terminal-answers-and-exit-codes.ts";

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
    .argument("<folder>", "a new folder, readable by its owner only; nothing is ever overwritten", parseBackupPlace)
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

Incremental backups can also go to an S3-compatible store: instead of a folder,
give s3://BUCKET/PREFIX, and see AWS_ACCESS_KEY_ID in .env.example.

Exit code 1 if keys that the log names are missing (with --incremental, only the
keys of new events are checked; doctor checks all). The backup is written
nevertheless: data encrypted with missing keys reads as erased, in it as in the
log.

Keep few backups, and only recent ones: a backup holds the keys of recipients
who are erased later. You may delete a FOLDER.*.partial: a killed backup leaves
it.`,
    )
    .action(async (folder, { incremental = false, verify = false, json }) => {
      const config = readConfig(terminal);
      if (verify) return showVerified(terminal, config, folder, json);
      const recording = { metadata: COMMAND_METADATA, monitor: monitorOn(terminal) };
      const made = await makeBackup(config, folder, { isIncremental: incremental, ...recording });
      const { bytes, number, missingKeys: missing_keys, masterKey } = made;
      const { position, hash } = made.log;
      const which = number === undefined ? folder : `${folder}, backup ${number}`;
      const text = `${which}: ${position} events, the chain is whole; head ${position} ${hash}; ${bytes} bytes\n`;
      answer(terminal, json, { folder, ...omitUndefined({ number }), position, hash, bytes, missing_keys }, text);
      if (json !== true) terminal.err(`the master key is not in it: ${masterKey}\n`);
      if (missing_keys === 0) return undefined;
      const remedy = "reachlog restore accepts this backup only with --accept-lost-keys";
      return fail(terminal, `${keysMissing(missing_keys)}; ${remedy}`);
    });

async function showVerified(terminal: Terminal, config: Config, folder: string, json: boolean | undefined) {
  const { faults, ...figures } = await verifyBackups(config, folder, monitorOn(terminal));
  const { backups, segments, position, hash } = figures;
  const whole = `${folder}: ${backups} backups in ${segments} segments are whole; head ${position} ${hash}`;
  const ok = faults.length === 0;
  const text = (ok ? [whole] : faults).map((sentence) => `${sentence}\n`).join("");
  answer(terminal, json, { folder, ok, ...figures, faults }, text);
  return ok ? EXIT.ok : EXIT.fault;
}

export const migrate: MakeCommand = (terminal) =>
  new Command("migrate")
    .summary("move log, vault and keys to another place, such as PostgreSQL")
    .description(
      `Moves the log of this configuration, its vault and the keys of personal data to
the place that other settings name: from a file to PostgreSQL, or back. All
positions, times and hashes stay the same, and so do cursors, idempotency keys,
tokens, erasures and suppressions. It makes a backup, proves it, and restores it
to the new place, which must be empty. A copy on a server is verified there once
more, and its head is signed again. The former place does not change.

The settings are a file in the form of .env, so that no password is on a command
line: the DATABASE_URL of the new place, and KEYS_DATABASE_URL or KEYS_FILE if
its keys are elsewhere. The master key stays the same: the content of a key file
is the REACHLOG_KEY of the new place.`,
    )
    .argument("<settings>", "a file with the settings of the new place", absolutePath)
    .option(...JSON_OPTION)
    .examples("reachlog migrate postgres.env")
    .addHelpText(
      "after",
      `
Stop the service first: the log of a running service is not moved. The command
needs space for two copies of the log, beside the log that is a file, or in
TMPDIR. You may delete a reachlog-*-* there, and on a server a schema named
"eventstore import ...": a killed migration leaves them. The first start in the
new place records that the log was restored: no run starts on that day. Never
serve both places: they would be two histories of one log.`,
    )
    .action(async (file, { json }) => {
      const source = await requireLog(terminal);
      const settings = { file, env: terminal.env, readFile: readSettingsFile };
      const { position, hash, to: target, masterKey } = await migrateLog(source, settings, monitorOn(terminal));
      const to = redactedUrl(target);
      const text = `${position} events are moved to ${to}, the chain is whole; head ${position} ${hash}\n`;
      answer(terminal, json, { to, position, hash }, text);
      terminal.err(
        `start the service with the settings of ${file} and the same master key (${masterKey}), ` +
          `and never again on ${redactedUrl(source.log)}\n`,
      );
    });

export const archive: MakeCommand = (terminal) =>
  new Command("archive")
    .summary("move old events out of the database into compressed segments")
    .description(
      `Moves the events before a day, a time or a position into sealed segment files,
and never the newest event. All commands and the service read them there as before:
no position, hash, head or proof changes. Each segment is written, read back and
proved before its events leave the database, in one transaction with its record. A
killed command loses nothing, and the next one continues. The log records the work
(EventsArchived).

Segments are in ARCHIVE_FOLDER, by default beside a log that is a file. From then on
they are part of the log: keep them as long as the log, and back them up with it. A
reachlog backup contains their events.

A log in a file becomes smaller only if no service uses it: the rest is then
rewritten, which needs as much free space again. PostgreSQL reuses the space.`,
    )
    .requiredOption(
      "--before <moment>",
      "a day such as 2025-01-01, which means its beginning in QUOTA_TIMEZONE; a time in ISO 8601; or a position",
    )
    .option(...JSON_OPTION)
    .examples("reachlog archive --before 2025-01-01")
    .action(async ({ before, json }) => {
      const config = await requireLog(terminal);
      const { store: place } = locateLog(config);
      const archived = await archiveBefore(
        await place.open(),
        { before, timezone: config.outreach.timezone },
        COMMAND_METADATA,
        monitorOn(terminal),
      );
      const kept = archived.events === 0 ? undefined : await place.compact("reachlog archive");
      const { events, segments, bytes, position } = archived;
      const text =
        events === 0
          ? `nothing to archive: the archive ends at position ${position}\n`
          : `${events} events are archived in ${segments} segments of ${bytes} bytes; the archive ends at position ${position}\n`;
      answer(terminal, json, { position, events, segments, bytes }, text);
      if (kept !== undefined) terminal.err(`${kept}\n`);
    });
