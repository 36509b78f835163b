import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../config/config.ts";
import { logFiles, type LogFiles } from "../log/log-files.ts";
import { makeId as newId, systemClock } from "../platform/clock.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "../privacy/encrypted-log.ts";
import { openKeyring } from "../privacy/keyring.ts";
import { refuseLostKeys } from "../privacy/lost-keys.ts";
import { masterKeyOf, unlock, type MasterKeyPlace, type Unlocked } from "../vault/master-key.ts";

/** The configured log, and all that was opened with it. Disposing it closes everything in reverse. */
export interface OpenedLog extends EncryptedLog, Unlocked {}

export type OpenLogOptions = Partial<Pick<EncryptedLogOptions, "owner" | "acceptLostKeys" | "clock" | "makeId">>;

/** Opens the configured log as {@link openLogAt} does. */
export function openLog(config: Config, options?: OpenLogOptions): Promise<OpenedLog> {
  return openLogAt(masterKeyPlaceOf(config), options);
}

/**
 * The one way to open a log, for the service and for commands: master key → vault → keys of personal data → log.
 * Throws a ServiceError (configuration, damaged), and what the store throws.
 */
export async function openLogAt(
  place: LogPlace,
  { owner, acceptLostKeys = false, clock = systemClock, makeId = newId }: OpenLogOptions = {},
): Promise<OpenedLog> {
  await using opening = new AsyncDisposableStack();
  const { files } = place;
  mkdirSync(dirname(files.log), { recursive: true });
  if (!acceptLostKeys) await refuseLostKeys(files);
  const unlocked = unlock(place);
  const { master, vault } = unlocked;
  opening.use(vault);
  const renew = (): Uint8Array => masterKeyOf(place);
  const keyring = opening.use(openKeyring({ file: files.keys, master, renew }, clock));
  const log = opening.use(await openEncryptedLog({ files, keyring, owner, acceptLostKeys, clock, makeId }));
  const opened = opening.move();
  return { ...log, ...unlocked, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** A log's files, and the master key where it is not in one of them. */
export interface LogPlace extends MasterKeyPlace {
  readonly files: LogFiles;
}

/** Where the log is, its master key, and what that opens. */
export function masterKeyPlaceOf(config: Config): LogPlace {
  return { files: filesOf(config), configured: config.key };
}

/** Everything lies beside the log, but for the keys of personal data where their own backups are short-lived. */
export function filesOf({ log: { file, keysFile } }: Config): LogFiles {
  const files = logFiles(file);
  return { ...files, keys: keysFile ?? files.keys };
}
