import { makeId } from "../../platform/clock.ts";
import type { Config } from "../../config/config.ts";
import { redactedUrl } from "../../config/log.ts";
import { createEventLog, type EventMetadata, type EventLog } from "../../log/event-log.ts";
import type { LogClock } from "../../log/log-clock.ts";
import { createSuppressionHashes, type HashesOf } from "../../recipients/suppress.ts";
import { locateLog } from "../../service/log-place.ts";
import { openLog, openStoredLog, type OpenedLog, type StoredLog } from "../../service/open.ts";
import { createEraseHandler } from "../../privacy/retention.ts";
import type { Keyring } from "../../privacy/keyring.ts";
import type { Vault } from "../../vault/vault.ts";
import { startProjector, type Projector } from "../../projector/projector.ts";
import { ServiceError } from "../../platform/service-error.ts";

/** The caller of all that commands cause. */
export const COMMAND_METADATA: EventMetadata = { caller: "command-line" };

/** Opens the existing log beside a running service. */
export async function openExistingLog(config: Config): Promise<OpenedLog> {
  await refuseNoLog(config);
  return openLog(config);
}

/** The same as {@link openStoredLog} opens it. */
export async function openExistingStoredLog(config: Config): Promise<StoredLog> {
  await refuseNoLog(config);
  return openStoredLog(config);
}

/** For those who would make files beside a log that is not there. */
export async function refuseNoLog(config: Config): Promise<void> {
  if (await locateLog(config).store.isThere()) return;
  throw new ServiceError(
    "not_found",
    `there is no log at ${redactedUrl(config.log)}: DATABASE_URL names another one, or the service was never started`,
  );
}

/** What a command decides with: a log, what belongs to it, and its projections. */
export interface Session extends AsyncDisposable {
  readonly encryptedLog: OpenedLog;
  readonly logClock: LogClock;
  readonly eventLog: EventLog;
  readonly keyring: Keyring;
  readonly vault: Vault;
  readonly hashesOf: HashesOf;
  readonly projector: Projector;
}

/** With the existing log, beside a running service. */
export async function openSession(config: Config): Promise<Session> {
  return sessionWith(await openExistingLog(config));
}

/** Its end closes the log too. */
export async function sessionWith(encryptedLog: OpenedLog): Promise<Session> {
  await using opening = new AsyncDisposableStack();
  const { keyring, vault } = opening.use(encryptedLog);
  const hashesOf = createSuppressionHashes(await vault.stableKey("suppression"));
  const erase = createEraseHandler(keyring);
  const projector = opening.use(await startProjector(encryptedLog, { erase, saves: () => false }));
  const eventLog = createEventLog(encryptedLog, makeId);
  const opened = opening.move();
  return {
    encryptedLog,
    logClock: encryptedLog.logClock,
    eventLog,
    keyring,
    vault,
    hashesOf,
    projector,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
