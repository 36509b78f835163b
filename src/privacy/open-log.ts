import type { LogStore } from "../../events/catalog.ts";
import type { Config } from "../config/config.ts";
import type { CheckpointStore } from "../log/checkpoint.ts";
import { clockRecord } from "../log/clock-record.ts";
import { fileClock, machineClock, serverClock, type LogClock } from "../log/log-clock.ts";
import { type Clock, makeId as newId } from "../platform/clock.ts";
import type { Logger } from "../platform/logger.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "./encrypted-log.ts";
import { keysIn } from "./key-store.ts";
import { openKeyring } from "./keyring.ts";
import { bindSecrets, refuseLostKeys, refuseLostLog, type BindOptions } from "./secrets-binding.ts";
import { readMasterKey, unlock, type Unlocked } from "../vault/master-key.ts";
import { openSecretStore } from "../vault/encrypted-secrets.ts";
import { locateLog, type LogPlace } from "./log-place.ts";

/** The configured log, and all that was opened with it. Disposing it closes everything in reverse. */
export interface OpenedLog extends EncryptedLog, Unlocked, StoredLog {
  /** The clock by which decisions on this log are made. */
  readonly logClock: LogClock;
  /** Keeps vault and keys from serving an earlier copy of the log; called by a service that continues this one. */
  goOn(): Promise<void>;
}

/** A log as it is stored, and its checkpoints. */
export interface StoredLog extends LogStore {
  readonly checkpoints: CheckpointStore;
}

export interface OpenLogOptions
  extends
    Omit<BindOptions, "goesOn">,
    Partial<Pick<EncryptedLogOptions, "owner" | "acceptLostKeys" | "clock" | "makeId" | "onCommit">> {
  /** Reports that a clock was moved. A service gives it, and then its clock is recorded next to a log in a file. */
  readonly logger?: Logger;
}

/** Opens the configured log as {@link openLogAt} does. */
export async function openLog(config: Config, options?: OpenLogOptions): Promise<OpenedLog> {
  return openLogAt(locateLog(config), options);
}

/** For callers that only prove or copy what is stored: they see nothing personal. */
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
 * The one way to open a log, for the service and for commands: master key → vault → keys of personal data → log.
 * Throws a ServiceError (configuration, damaged), and what the store throws.
 */
export async function openLogAt(
  logPlace: LogPlace,
  { owner, acceptLostKeys = false, clock, makeId = newId, onCommit, logger, ...accepted }: OpenLogOptions = {},
): Promise<OpenedLog> {
  const { store: place, secrets, checkpoints: checkpointsOf } = logPlace;
  await using opening = new AsyncDisposableStack();
  await refuseLostLog(logPlace, accepted.acceptLoss);
  if (!acceptLostKeys) await refuseLostKeys(place, secrets);
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
      // A server uses its own clock for that.
      clock: secrets.isShared ? clock : logClock.now,
      makeId,
      onCommit,
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
