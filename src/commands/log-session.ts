import { existsSync } from "node:fs";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { makeId } from "../platform/clock.ts";
import type { Config } from "../config/config.ts";
import { createEventLog, type EventMetadata, type EventLog } from "../log/event-log.ts";
import { createSuppressionHashes, type HashesOf } from "../outreach/suppression-hashes.ts";
import { openLog, type OpenedLog } from "../service/open.ts";
import { erasing } from "../privacy/apply-erasures.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { Vault } from "../vault/vault.ts";
import { startProjector, type Projector } from "../projector/projector.ts";
import { ServiceError } from "../platform/service-error.ts";

/** The caller of all that commands cause. */
export const COMMAND_METADATA: EventMetadata = { caller: "command-line" };

/** Opens the existing log beside a running service. */
export async function openExistingLog(config: Config): Promise<OpenedLog> {
  refuseNoLog(config);
  return openLog(config);
}

/** The same for those who only prove or copy what is stored: they need no keys, and see nothing personal. */
export async function openStoredLog(config: Config): Promise<EventStore<Event>> {
  refuseNoLog(config);
  return openSqliteStore<Event>({ file: config.log.file });
}

/** For those who would make files beside a log that is not there. */
export function refuseNoLog({ log }: Config): void {
  if (existsSync(log.file)) return;
  throw new ServiceError(
    "not_found",
    `there is no log at ${log.file}: DATABASE_URL names another one, or the service was never started`,
  );
}

/** What a command decides with: a log, what belongs to it, and its projections. */
export interface Session {
  readonly eventLog: EventLog;
  readonly keyring: Keyring;
  readonly vault: Vault;
  readonly hashesOf: HashesOf;
  readonly projector: Projector;
}

/** `stack` closes the log too. */
export async function openSession(stack: AsyncDisposableStack, store: OpenedLog): Promise<Session> {
  const { keyring, vault } = stack.use(store);
  const hashesOf = createSuppressionHashes(await vault.stableKey("suppression"));
  const projector = stack.use(await startProjector(store, { erase: erasing(keyring), isBrief: true }));
  return { eventLog: createEventLog(store, makeId), keyring, vault, hashesOf, projector };
}
