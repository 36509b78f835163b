import type { LogStore } from "../../../events/catalog.ts";
import { makeId } from "../../platform/clock.ts";
import type { Config } from "../../config/config.ts";
import { createEventLog, type EventMetadata } from "../../log/event-log.ts";
import { refuseNoLog } from "../../privacy/log-place.ts";
import { openLog, openStoredLog, type OpenedLog, type StoredLog } from "../../privacy/open-log.ts";
import { appendRead, type PersonalRead } from "../../privacy/read-audit.ts";
import { openSessionWith, type Session } from "../../service/session.ts";
import { readConfig } from "./command.ts";
import type { Terminal } from "./terminal.ts";

export const COMMAND_METADATA: EventMetadata = { caller: "command-line" };

/** Opens the existing log; a service may run meanwhile. */
export async function openExistingLog(terminal: Pick<Terminal, "env">): Promise<OpenedLog> {
  return openLog(await requireLog(terminal));
}

/** Opens the existing log as {@link openStoredLog} does. */
export async function openExistingStoredLog(terminal: Terminal): Promise<StoredLog> {
  return openStoredLog(await requireLog(terminal));
}

/**
 * Records what a command is about to show, if AUDIT_READS is on. Throws what the store throws; the command must then
 * show nothing.
 */
export async function recordRead(terminal: Terminal, store: LogStore, read: PersonalRead): Promise<void> {
  if (!readConfig(terminal).auditReads) return;
  await appendRead(createEventLog(store, makeId).append, read, readCaller(terminal));
}

/** The caller that events of a command record. */
export function readCaller({ caller }: Terminal): EventMetadata {
  return caller === undefined ? COMMAND_METADATA : { caller };
}

/** Returns the configuration. Throws a ServiceError (not_found) if there is no log. */
export async function requireLog(terminal: Pick<Terminal, "env">): Promise<Config> {
  const config = readConfig(terminal);
  await refuseNoLog(config);
  return config;
}

/** Opens the existing log; a service may run meanwhile. Disposing it closes the log. */
export async function openSession(terminal: Terminal): Promise<Session> {
  return openSessionWith(await requireLog(terminal));
}
