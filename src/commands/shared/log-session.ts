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
  await appendRead(createEventLog(store, makeId).append, read, readCaller(terminal));
}

/** The caller of what a command causes. */
export function readCaller({ caller }: Terminal): EventMetadata {
  return caller === undefined ? COMMAND_METADATA : { caller };
}

/** The configuration of a log that exists. */
export async function requireLog(terminal: Pick<Terminal, "env">): Promise<Config> {
  const config = readConfig(terminal);
  await refuseNoLog(config);
  return config;
}

/** Opens the existing log beside a running service. Disposing it closes the log. */
export async function openSession(terminal: Terminal): Promise<Session> {
  return openSessionWith(await requireLog(terminal));
}
