import type { LogStore } from "../../../events/event-types-and-codec.ts";
import { makeId } from "../../platform/clock-ids-and-timers.ts";
import type { Config } from "../../config/config.ts";
import { createEventLog, type EventMetadata } from "../../log/event-log.ts";
import { refuseNoLog } from "../../privacy/locate-log.ts";
import { openLog, openStoredLog, type OpenedLog, type StoredLog } from "../../privacy/open-log.ts";
import { appendRead, type PersonalRead } from "../../privacy/record-personal-data-read.ts";
import type { Reachlog } from "../../privacy/log-context-types.ts";
import { openReachlog } from "../../service/open-reachlog.ts";
import { readConfig } from "./command.ts";
import type { Terminal, CommandEnvironment } from "./terminal-answers-and-exit-codes.ts";

export const COMMAND_METADATA: EventMetadata = { caller: "command-line" };

/** Opens the configured log, which must exist. A service may use it at the same time. */
export async function openExistingLog(terminal: CommandEnvironment): Promise<OpenedLog> {
  return openLog(await requireLog(terminal));
}

/** Opens the existing log as {@link openStoredLog} does. A service may use it at the same time. */
export async function openExistingStoredLog(terminal: Terminal): Promise<StoredLog> {
  return openStoredLog(await requireLog(terminal));
}

/**
 * Records which personal data a command is about to show, if AUDIT_READS is on. Throws what the store throws; the
 * command must then show nothing.
 */
export async function recordRead(terminal: Terminal, store: LogStore, read: PersonalRead): Promise<void> {
  if (!readConfig(terminal).auditReads) return;
  await appendRead(createEventLog(store, makeId).append, read, readCaller(terminal));
}

/** Returns the caller's name for the events of this command. */
export function readCaller({ caller }: Terminal): EventMetadata {
  return caller === undefined ? COMMAND_METADATA : { caller };
}

/** Returns the configuration. Throws a ServiceError (not_found) if the configured log does not exist. */
export async function requireLog(terminal: CommandEnvironment): Promise<Config> {
  const config = readConfig(terminal);
  await refuseNoLog(config);
  return config;
}

/**
 * Opens the existing log with vault, keys and projections. A service may use it at the same time. Disposing it closes
 * the log.
 */
export async function openExistingReachlog(terminal: Terminal): Promise<Reachlog & AsyncDisposable> {
  return openReachlog(await requireLog(terminal), { write: terminal.err });
}
