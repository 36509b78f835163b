import { relative } from "node:path";
import { redactedUrl } from "../config/database.ts";
import { acceptClock } from "../log/detect-wrong-clock-at-start.ts";
import { skewInWords } from "../log/log-time-and-clock-skew.ts";
import { correctLogTime } from "../outreach/confirm-clock-after-future-events.ts";
import { locateFiles, locateLog } from "../privacy/locate-log.ts";
import { parseBackupPlace } from "../backup/parse-backup-place.ts";
import { restoreBackup } from "../backup/restore.ts";
import { COMMAND_METADATA, openExistingReachlog, requireLog } from "./shared/open-log-and-record-reads.ts";
import { Command, JSON_OPTION, readConfig, type MakeCommand } from "./shared/command.ts";
import { AS_OF_OPTION } from "./shared/as-of-option.ts";
import { monitorOn } from "./shared/progress.ts";
import { answer, fail, type Terminal } from "./shared/terminal-answers-and-exit-codes.ts";

export const restoreCommand: MakeCommand = (terminal) =>
  new Command("restore")
    .summary("restore a backup, or only prove that it can be restored")
    .description(
      `Proves a backup in a temporary place, and then restores it to this
configuration's DATABASE_URL, where no log may exist yet. A newer vault and newer
keys of the same log stay, so erased recipients stay erased. The proof covers: the
files are unchanged since a holder of the master key wrote them; this key opens
everything that is encrypted; the log's own key signed the head; the log holds that
head and its chain is whole; and the log's personal data has its keys.

A backup does not hold the master key: provide it as for the service (see the end
of this help). Run the command as the service's user.`,
    )
    .argument("<folder>", "what reachlog backup wrote: a folder, or s3://BUCKET/PREFIX", parseBackupPlace)
    .option("--backup <number>", "which of the incremental backups; default: the newest")
    .option(...AS_OF_OPTION)
    .option(
      "--rehearse",
      "only prove it: nothing is restored; the log that it is a backup of, if it is here, records the proof",
    )
    .option("--accept-lost-keys", "restore despite missing keys: what they encrypted reads as erased")
    .option(
      "--take-over-keys",
      "take over vault and keys from a log that no longer exists; a service that still uses that log ends",
    )
    .option(...JSON_OPTION)
    .examples(
      "reachlog restore /mnt/backup/monday --rehearse",
      "reachlog restore /mnt/backup/monday",
      "reachlog restore /mnt/backup/all --as-of 2026-11-21T09:00:00Z",
    )
    .addHelpText(
      "after",
      () => `
Incremental backups are restored with their newest keys and vault, so data that
was erased since that moment stays erased.

The proof needs as much space as the backup: beside the log, or in TMPDIR with
--rehearse and for a log on PostgreSQL, which is verified there once more. You
may delete a reachlog-rehearsal-*: a killed restore leaves it. The first start
records that the log was restored: no run starts on that day, and messages that
may have been sent or delivered since are not repeated. From then on, consumers
whose cursor is beyond the backup are refused.

The master key is read from REACHLOG_KEY${describeKeyFile(terminal)}.`,
    )
    .action(async (place, { rehearse: only = false, backup: number, asOf, takeOverKeys = false, json, ...options }) => {
      const config = readConfig(terminal);
      const { acceptLostKeys } = options;
      const choices = { isRehearsal: only, number, asOf, takeOverKeys, acceptLostKeys };
      const recording = { metadata: COMMAND_METADATA, monitor: monitorOn(terminal) };
      const { log, made_at, isOfIncrements } = await restoreBackup(config, place, choices, recording);
      const { position, hash } = log;
      const done = only ? "is whole and can be restored" : `is restored to ${redactedUrl(config.log)}`;
      // A folder of incremental backups has one `made_at`, that of its newest backup. An older one may have been
      // restored, so the sentence names no time.
      const which = isOfIncrements ? place : `${place} of ${made_at}`;
      const text = `${which} ${done}: ${position} events; head ${position} ${hash}\n`;
      answer(terminal, json, { folder: place, restored: !only, made_at, position, hash }, text);
    });

export const restored: MakeCommand = (terminal) =>
  new Command("restored")
    .summary("declare that this log was restored by other means")
    .description(
      `Declares that other programs restored the log of this configuration from a copy:
a snapshot of the disk, copied files, or a dump. Such a log lacks the events
since the copy was made. The next start treats it as restored by reachlog
restore: it records LogRestored, starts no run on that day, and does not repeat
what may have been sent or delivered.

On PostgreSQL a start notices most copies by itself: see docs/postgresql.md.`,
    )
    .option(...JSON_OPTION)
    .examples("reachlog restored")
    .addHelpText("after", "\nStop the service first: while one runs, this is refused (75).")
    .action(async ({ json }) => {
      const config = await requireLog(terminal);
      await locateLog(config).store.beginEpoch("operator", `reachlog restored, pid ${process.pid}`);
      const shown = redactedUrl(config.log);
      answer(terminal, json, { restored: shown }, `the next start treats the log in ${shown} as a restored one\n`);
    });

/**
 * Names the log's key file for the command's help. Empty for faulty settings and for a log on a server, which has no
 * key file.
 */
function describeKeyFile(terminal: Terminal): string {
  try {
    const { log } = readConfig(terminal);
    if (log.kind !== "sqlite") return "";
    const file = locateFiles(log).key;
    const below = relative(process.cwd(), file);
    return `, else from the file ${below.startsWith("..") ? file : below}`;
  } catch {
    return "";
  }
}

const NOT_AHEAD =
  "the log's newest event is not ahead of this machine's clock: there is nothing to correct; " +
  "restart a service that still starts no run because of its clock";

export const clockCorrected: MakeCommand = (terminal) =>
  new Command("clock-corrected")
    .summary("declare that the clock is right, not the log's times")
    .description(
      `Declares that this machine's clock is right now, after a clock that was ahead made
the log record later times. Recorded times stay, and new events get the newest
recorded time until the clock reaches it. From now on the day's quota and the
sending window follow the clock: messages sent under later days count for today.
After a jump of the clock, even while the service was stopped, runs start again.

On PostgreSQL the clock is the server's.`,
    )
    .option(...JSON_OPTION)
    .examples("reachlog clock-corrected")
    .addHelpText("after", "\nExit code 1 if neither the log nor the service's record contradicts the clock.")
    .action(async ({ json }) => {
      const { clock: record } = locateLog(await requireLog(terminal));
      const isAccepted = record !== undefined && acceptClock(record);
      await using context = await openExistingReachlog(terminal);
      const { at, day, aheadMs } = await correctLogTime(context, context.config.outreach, COMMAND_METADATA);
      if (aheadMs === undefined && !isAccepted) return fail(terminal, NOT_AHEAD);
      const how =
        aheadMs === undefined
          ? "the clock is trusted again"
          : `${skewInWords(-aheadMs)} time, and is trusted from now on`;
      return answer(terminal, json, { at, day }, `${how}: today is ${day}\n`);
    });
