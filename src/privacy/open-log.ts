import type { CheckpointStore } from "eventstore-lite/proof";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import type { Config } from "../config/config.ts";
import { clockRecord } from "../log/detect-wrong-clock-at-start.ts";
import { fileClock, machineClock, serverClock, type LogClock } from "../log/log-time-and-clock-skew.ts";
import { type Clock, makeId as newId, type MakeId } from "../platform/clock-ids-and-timers.ts";
import type { Logger } from "../platform/logger.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "./encrypted-log.ts";
import { keysIn } from "./key-store.ts";
import { openKeyring } from "./keyring.ts";
import { bindSecrets, refuseLostKeys, refuseLostLog, type BindOptions } from "./bind-secrets-to-log.ts";
import { readMasterKey, unlock, type Unlocked } from "../vault/master-key.ts";
import { openSecretStore } from "../vault/secret-store.ts";
import { locateLog, type LogPlace } from "./locate-log.ts";

/** The opened log, with its vault and keys. Disposing it closes everything in reverse order. */
export interface OpenedLog extends EncryptedLog, Unlocked, StoredLog {
  /** The clock by which decisions on this log are made. */
  readonly logClock: LogClock;
  /**
   * Makes vault and keys accept only this continuation of the log, and refuse earlier copies of it. A service calls
   * this when it begins to serve the log, and a restore when the log is in place.
   */
  goOn(): Promise<void>;
}

/** A log without decryption, and its checkpoints. */
export interface StoredLog extends LogStore {
  readonly checkpoints: CheckpointStore;
}

/** Replacements for the clock and the ids of a real process, and the losses that an operator accepts. */
export interface LogOverrides {
  readonly clock?: Clock | undefined;
  readonly makeId?: MakeId;
  /** True if a log without events may replace a lost one. */
  readonly acceptLoss?: boolean | undefined;
  /** True to bind vault and keys to this log although they belong to another. */
  readonly takeOverKeys?: boolean | undefined;
  /** True to continue with these keys although other keys encrypted the log, and to record that. */
  readonly acceptLostKeys?: boolean | undefined;
  /** True to write to the log on a separate thread, as {@link OpenStoreOptions.writerThread} says. */
  readonly writerThread?: boolean | undefined;
}

export interface OpenLogOptions extends LogOverrides {
  /** Name of the process, if it opens a log in a file as its only owner. */
  readonly owner?: string | undefined;
  readonly onCommit?: EncryptedLogOptions["onCommit"];
  /**
   * Logger that reports a moved clock. Only a service gives one; its clock is then recorded next to a log in a file.
   */
  readonly logger?: Logger | undefined;
}

/** Opens the log that the settings name, with its vault and keys, by {@link openLogAt}. */
export async function openLog(config: Config, options?: OpenLogOptions): Promise<OpenedLog> {
  return openLogAt(locateLog(config), options);
}

/** Opens the configured log without decryption, for callers that only prove or copy what is stored. */
export async function openStoredLog(config: Config): Promise<StoredLog> {
  const place = locateLog(config);
  await using opening = new AsyncDisposableStack();
  const store = opening.use(await place.store.open());
  const checkpoints = await place.checkpoints(async () => opening.use((await unlock(place.secrets)).vault));
  const opened = opening.move();
  return { ...store, checkpoints, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

function openClock(file: string | undefined, clock: Clock | undefined, logger: Logger | undefined): LogClock {
  if (clock !== undefined) return fileClock(clock);
  if (file === undefined) return serverClock({ logger });
  const { keep, ...record } = clockRecord(file);
  return machineClock({ logger, record: logger === undefined ? record : { ...record, keep } });
}

/**
 * The one way to open a log, for the service and for commands: master key, then vault, then keys of personal data, then
 * log. Throws a ServiceError (configuration, damaged), and what the store throws.
 */
export async function openLogAt(
  logPlace: LogPlace,
  {
    owner,
    acceptLostKeys = false,
    clock,
    makeId = newId,
    onCommit,
    logger,
    writerThread,
    ...accepted
  }: OpenLogOptions = {},
): Promise<OpenedLog> {
  const { store: place, secrets, checkpoints: checkpointsOf } = logPlace;
  await using opening = new AsyncDisposableStack();
  const isThere = await refuseLostLog(logPlace, accepted.acceptLoss);
  if (isThere && !acceptLostKeys) await refuseLostKeys(place, secrets);
  const unlocked = await unlock(secrets);
  const { master, vault } = unlocked;
  opening.use(vault);
  const renew = (): Promise<Uint8Array> => readMasterKey(secrets);
  const keys = opening.use(await openSecretStore({ place: secrets.keys, master, renew }));
  const logClock = openClock(logPlace.clock, clock, logger);
  const keyring = await openKeyring(keysIn(keys), logClock.now);
  const keysName = secrets.keys.name;
  const bind = (store: LogStore, options: BindOptions = accepted): Promise<void> =>
    bindSecrets(logPlace, store, { keys, vault }, options);
  const log = opening.use(
    await openEncryptedLog({
      place,
      keysName,
      keyring,
      areBoundTo: keys.areBoundTo,
      bind,
      owner,
      acceptLostKeys,
      // A log on a server uses the server's clock unless a test replaces it.
      clock: secrets.isShared ? clock : logClock.now,
      makeId,
      onCommit,
      writerThread,
    }),
  );
  await logClock.look(log);
  const checkpoints = await checkpointsOf(async () => vault);
  const opened = opening.move();
  return {
    ...logClock.watched(log),
    ...unlocked,
    checkpoints,
    logClock,
    failed: Promise.race([log.failed, keys.taken, vault.taken]),
    goOn: () => bind(log, { goesOn: true }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
