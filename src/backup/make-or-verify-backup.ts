import type { Config } from "../config/config.ts";
import { isS3Address } from "../networks/s3/parse-address.ts";
import { systemClock } from "../platform/clock-ids-and-timers.ts";
import { temporaryFolder } from "../platform/new-file.ts";
import { usageError } from "../platform/service-error.ts";
import type { WorkMonitor } from "../log/progress-and-cancellation.ts";
import { locateLog, refuseNoLog } from "../privacy/locate-log.ts";
import { missingKeys } from "../privacy/find-lost-keys.ts";
import { openLog } from "../privacy/open-log.ts";
import { nameOfKey } from "../vault/master-key.ts";
import { refuseArchive, withoutSlash } from "./parse-backup-place.ts";
import { readSettled, verifyIncrements } from "./extract-from-increments.ts";
import { readIncrements } from "./increments-manifest.ts";
import { openIncrements, writeRemoteIncrement } from "./remote-increments.ts";
import { loadMasterKey } from "./restore.ts";
import { recordBackup, writeBackup, type BackupSource, type Recording, type WriteOptions } from "./write-backup.ts";
import { type Increment, writeIncrement } from "./write-increment.ts";

/** A backup that was made and recorded. */
export interface MadeBackup extends Increment {
  /**
   * Number of lost keys: the backed-up events name them, but the key store no longer has them, so the backup has no key
   * for that personal data either.
   */
  readonly missingKeys: number;
  /** Where the operator keeps the master key, such as the path of its file. The backup does not contain the key. */
  readonly masterKey: string;
}

/**
 * Backs up the configured log while a service runs, and records it in the log. `place`: a new folder, or with
 * `isIncremental` a folder of incremental backups or the address of one. Throws a ServiceError, or what the store
 * throws.
 */
export async function makeBackup(
  config: Config,
  place: string,
  { isIncremental, ...recording }: { readonly isIncremental: boolean } & Recording,
): Promise<MadeBackup> {
  const { secrets, store } = locateLog(config);
  const write = chooseWriter(config, place, isIncremental);
  if (isIncremental) refuseArchive(place, config);
  await refuseNoLog(config);
  await using log = await openLog(config);
  const { position } = await log.head();
  const made = await recording.monitor.showProgress("verifying", position, (onProgress) =>
    write({ log, secrets }, place, { clock: systemClock, onProgress }),
  );
  await recordBackup("BackupMade", made, store, recording);
  const { length } = await missingKeys(log, log.keyring, log.logClock.now(), made.first);
  return { ...made, missingKeys: length, masterKey: nameOfKey(secrets) };
}

/**
 * Returns the function that writes the requested kind of backup: whole, incremental in a folder, or incremental in a
 * store. Throws a ServiceError (usage).
 */
function chooseWriter(config: Config, place: string, isIncremental: boolean): typeof writeWhole {
  if (!isS3Address(place)) return isIncremental ? writeIncrement : writeWhole;
  if (isIncremental) return writeRemoteIncrement.bind(undefined, config);
  throw usageError(`${place} accepts only incremental backups: add --incremental`);
}

async function writeWhole(source: BackupSource, folder: string, options: WriteOptions): Promise<Increment> {
  const { log: copied, made_at, files } = await writeBackup(source, folder, options);
  const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
  return { log: copied, made_at, bytes, number: undefined, first: 1 };
}

/**
 * Proves that the incremental backups at a place can be restored with the configured master key. `faults`: a sentence
 * for each missing or altered file. Throws a ServiceError.
 */
export async function verifyBackups(config: Config, place: string, { showProgress }: WorkMonitor) {
  const master = loadMasterKey(config);
  using copy = await openIncrements(place, config, master);
  const { folder } = copy;
  const { position } = readIncrements(folder, master).backups.at(-1)!;
  using scratch = temporaryFolder("reachlog-verify-");
  const { increments, faults } = await showProgress("verifying", position, (onProgress) =>
    readSettled(
      folder,
      () => verifyIncrements(folder, master, { scratch: scratch.path, onProgress }),
      (found) => found.faults.length === 0,
    ),
  );
  const { backups, segments } = increments;
  return {
    backups: backups.length,
    segments: segments.length,
    position,
    hash: backups.at(-1)!.hash,
    faults: faults.map((sentence) => sentence.replaceAll(folder, withoutSlash(place))),
  };
}
