import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Config } from "../config/config.ts";
import type { PostgresLog, SqliteLog } from "../config/log.ts";
import { checkpointFiles, type CheckpointStore } from "../log/checkpoint-store.ts";
import { logFiles, type LogFiles } from "../log/log-files.ts";
import { makeId as newId, systemClock } from "../platform/clock.ts";
import type { Secret } from "../platform/secret.ts";
import { ServiceError } from "../platform/service-error.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "../privacy/encrypted-log.ts";
import { keysIn } from "../privacy/key-store.ts";
import { openKeyring } from "../privacy/keyring.ts";
import { refuseLostKeys } from "../privacy/lost-keys.ts";
import { masterKeyOf, unlock, type MasterKeyPlace, type Unlocked } from "../vault/master-key.ts";
import { openSecretStore } from "../vault/secret-store.ts";
import { sqliteSecrets } from "../vault/sqlite-secrets.ts";

/** The configured log, and all that was opened with it. Disposing it closes everything in reverse. */
export interface OpenedLog extends EncryptedLog, Unlocked, StoredLog {}

/** A log as it is stored, and what was last signed of it. */
export interface StoredLog extends EventStore<Event> {
  readonly checkpoints: CheckpointStore;
}

export type OpenLogOptions = Partial<
  Pick<EncryptedLogOptions, "owner" | "acceptLostKeys" | "clock" | "makeId" | "onCommit">
>;

/** Opens the configured log as {@link openLogAt} does. */
export async function openLog(config: Config, options?: OpenLogOptions): Promise<OpenedLog> {
  return openLogAt(logPlaceOf(config), options);
}

/** For those who only prove or copy what is stored: they need no keys, and see nothing personal. */
export async function openStoredLog({ log }: Config): Promise<StoredLog> {
  if (log.kind === "postgres") throw unsupported(log);
  const files = filesOf(log);
  return { ...(await openSqliteStore<Event>({ file: files.log })), checkpoints: checkpointFiles(files) };
}

/** Where there is no log yet, the first start makes one. */
export function isLogThere({ log }: Config): boolean {
  return log.kind === "postgres" || existsSync(log.file);
}

/**
 * The one way to open a log, for the service and for commands: master key → vault → keys of personal data → log.
 * Throws a ServiceError (configuration, damaged), and what the store throws.
 */
export async function openLogAt(
  place: LogPlace,
  { owner, acceptLostKeys = false, clock = systemClock, makeId = newId, onCommit }: OpenLogOptions = {},
): Promise<OpenedLog> {
  await using opening = new AsyncDisposableStack();
  const { files } = place;
  mkdirSync(dirname(files.log), { recursive: true });
  if (!acceptLostKeys) await refuseLostKeys(files);
  const secrets = masterKeyPlaceAt(place);
  const unlocked = await unlock(secrets);
  opening.use(unlocked.vault);
  const { master } = unlocked;
  const renew = (): Promise<Uint8Array> => masterKeyOf(secrets);
  const keys = opening.use(await openSecretStore({ place: secrets.keys, master, renew }));
  const keyring = await openKeyring(keysIn(keys), clock);
  const log = opening.use(await openEncryptedLog({ files, keyring, owner, acceptLostKeys, clock, makeId, onCommit }));
  const opened = opening.move();
  return {
    ...log,
    ...unlocked,
    checkpoints: checkpointFiles(files),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** A log's files, and the master key where it is not in one of them. */
export interface LogPlace {
  readonly files: LogFiles;
  readonly configured: Secret | undefined;
}

/** Where the configured log has its master key, and what that opens. */
export function masterKeyPlaceOf(config: Config): MasterKeyPlace {
  return masterKeyPlaceAt(logPlaceOf(config));
}

function logPlaceOf({ log, key }: Config): LogPlace {
  if (log.kind === "postgres") throw unsupported(log);
  return { files: filesOf(log), configured: key };
}

function masterKeyPlaceAt({ files, configured }: LogPlace): MasterKeyPlace {
  return { vault: sqliteSecrets(files.vault), keys: sqliteSecrets(files.keys), key: configured ?? files.key };
}

/** Everything lies beside the log, but for the keys of personal data where their own backups are short-lived. */
export function filesOf({ file, keysFile }: SqliteLog): LogFiles {
  const files = logFiles(file);
  return { ...files, keys: keysFile ?? files.keys };
}

function unsupported({ shown }: PostgresLog): ServiceError {
  return new ServiceError("configuration", `DATABASE_URL: ${shown}: PostgreSQL is not supported yet by this version`);
}
