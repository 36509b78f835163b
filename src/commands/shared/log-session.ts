import type { LogStore } from "../../../events/catalog.ts";
import { makeId, sleep } from "../../platform/clock.ts";
import type { Config } from "../../config/config.ts";
import { createEventLog, type EventMetadata } from "../../log/event-log.ts";
import { createFindLinkKeys } from "../../recipients/record-consent.ts";
import { createSuppressionHashes } from "../../recipients/suppress.ts";
import { refuseNoLog } from "../../privacy/log-place.ts";
import { openLog, openStoredLog, type OpenedLog, type StoredLog } from "../../privacy/open-log.ts";
import { createEraseHandler } from "../../privacy/retention.ts";
import { appendRead, type PersonalRead } from "../../privacy/read-audit.ts";
import { startProjector } from "../../projector/projector.ts";
import { readConfig } from "./command.ts";
import type { Terminal } from "./terminal.ts";

export const COMMAND_METADATA: EventMetadata = { caller: "command-line" };

/** Opens the existing log beside a running service. */
export async function openExistingLog(terminal: Pick<Terminal, "env">): Promise<OpenedLog> {
  return openLog(await requireLog(terminal));
}

/** The same as {@link openStoredLog} opens it. */
export async function openExistingStoredLog(terminal: Terminal): Promise<StoredLog> {
  return openStoredLog(await requireLog(terminal));
}

/**
 * Records what a command is about to show, where AUDIT_READS is on. Throws what the store throws: then the command must show
 * nothing.
 */
export async function recordRead(terminal: Terminal, store: LogStore, read: PersonalRead): Promise<void> {
  if (!readConfig(terminal).auditReads) return;
  const metadata = terminal.caller === undefined ? COMMAND_METADATA : { caller: terminal.caller };
  await appendRead(createEventLog(store, makeId).append, read, metadata);
}

/** The configuration of a log that exists. */
export async function requireLog(terminal: Pick<Terminal, "env">): Promise<Config> {
  const config = readConfig(terminal);
  await refuseNoLog(config);
  return config;
}

/** What a command decides with: a log, what belongs to it, and its projections. */
export type Session = Awaited<ReturnType<typeof openSession>>;

/** Opens the existing log beside a running service. Disposing it closes the log. */
export async function openSession(terminal: Terminal) {
  return openSessionWith(await requireLog(terminal));
}

/** The same; creates a missing log. */
export async function openSessionWith(config: Config) {
  await using opening = new AsyncDisposableStack();
  const encryptedLog = opening.use(await openLog(config));
  const { keyring, vault, logClock } = encryptedLog;
  const hashesOf = createSuppressionHashes(await vault.stableKey("suppression"));
  const erase = createEraseHandler(keyring);
  const projector = opening.use(await startProjector(encryptedLog, { erase, saves: () => false }));
  const eventLog = createEventLog(encryptedLog, makeId);
  const opened = opening.move();
  return {
    config,
    encryptedLog,
    logClock,
    eventLog,
    keyring,
    vault,
    hashesOf,
    findLinkKeys: createFindLinkKeys(keyring),
    projector,
    sleep,
    random: Math.random,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
