import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import { usageError } from "../platform/service-error.ts";
import { locateFiles, locateLog } from "../privacy/locate-log.ts";
import { type Moment, parseMoment } from "../projector/parse-moment.ts";
import { keyError, parseKey } from "../vault/derive-keys.ts";
import { loadKeyFile } from "../vault/master-key.ts";
import { extractBackup, readSettled } from "./extract-from-increments.ts";
import { isIncremental, readIncrements } from "./increments-manifest.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { putBack, refuseTaken } from "./put-backup-in-place.ts";
import { openIncrements } from "./remote-increments.ts";
import { recordBackup, type Recording } from "./write-backup.ts";

interface RestoreChoices {
  /**
   * True to prove the backup without restoring it. The log at the configured place, if it is the one backed up, then
   * records the proof.
   */
  readonly isRehearsal: boolean;
  /** Number of the incremental backup to restore, from 1; default: the newest. */
  readonly number: string | undefined;
  /** Moment as of which the log is restored; only incremental backups can restore one. */
  readonly asOf: string | undefined;
  readonly takeOverKeys: boolean;
  readonly acceptLostKeys: boolean | undefined;
}

/**
 * Proves the backup at a place, and restores it as the configured log. `isOfIncrements`: it was built from incremental
 * backups, and `made_at` is the time of the newest of them. Throws a ServiceError.
 */
export async function restoreBackup(
  config: Config,
  place: string,
  { isRehearsal, number, asOf, takeOverKeys, acceptLostKeys }: RestoreChoices,
  recording: Recording,
): Promise<Manifest & { readonly isOfIncrements: boolean }> {
  const master = loadMasterKey(config);
  using copy = await openIncrements(place, config, master);
  const { folder } = copy;
  const moment = await copy.work(async () => chooseMoment(config, folder, master, { number, asOf }));
  const id = moment === undefined ? readManifest(folder).log.id : readIncrements(folder, master).log;
  if (!isRehearsal) await refuseTaken(config, id, takeOverKeys);
  // Incremental backups are first turned into one whole backup, which is removed after use.
  using scratch = moment && temporaryFolder("reachlog-rehearsal-", folderBeside(config));
  const source = scratch === undefined ? folder : join(scratch.path, "backup");
  if (moment !== undefined)
    await copy.work(() => readSettled(folder, () => extractBackup(folder, master, source, moment)));
  const manifest = await putBack(recording.monitor, source, config, { master, isRehearsal, acceptLostKeys });
  if (isRehearsal) await recordBackup("BackupRehearsed", manifest, locateLog(config).store, recording);
  return { ...manifest, isOfIncrements: source !== folder };
}

/**
 * Returns the moment to restore from incremental backups (default: the newest); undefined for a whole backup. Throws a
 * ServiceError (usage).
 */
function chooseMoment(
  config: Config,
  folder: string,
  master: Uint8Array,
  { number, asOf }: { readonly number: RestoreChoices["number"]; readonly asOf: RestoreChoices["asOf"] },
): Moment | undefined {
  if (number !== undefined && asOf !== undefined) throw usageError("give --backup or --as-of, not both");
  if (!isIncremental(folder)) {
    if (number === undefined && asOf === undefined) return undefined;
    throw usageError(`${folder} is a single backup: --backup and --as-of need incremental backups`);
  }
  if (number === undefined) return parseMoment(asOf, config.outreach.timezone);
  const { backups } = readIncrements(folder, master);
  const chosen = backups[Number(number) - 1];
  if (chosen === undefined) throw usageError(`${folder} has backups 1 to ${backups.length}, but no ${number}`);
  return { to: chosen.position };
}

/**
 * Returns the folder of the configured log's file; undefined if the log is on a server, or the folder does not exist
 * yet.
 */
function folderBeside({ log }: Config): string | undefined {
  return log.kind === "sqlite" && existsSync(dirname(log.file)) ? dirname(log.file) : undefined;
}

/** Returns the configured master key, which no backup contains. Throws a ServiceError (configuration). */
export function loadMasterKey({ key, log }: Config): Uint8Array {
  if (key !== undefined) return parseKey(key.reveal(), "REACHLOG_KEY");
  const file = log.kind === "sqlite" ? locateFiles(log).key : "";
  if (existsSync(file)) return loadKeyFile(file);
  throw keyError(`the master key is not in a backup: set REACHLOG_KEY, or put its file at ${file}`);
}
