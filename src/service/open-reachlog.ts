import type { Commit } from "eventstore-lite";
import { listConfiguredChannels } from "../config/optional-parts.ts";
import type { Config } from "../config/config.ts";
import { createAnnounce } from "../delivery/suspend-channel-and-alert-operator.ts";
import { createEventLog, type EventLog, type LogContext } from "../log/event-log.ts";
import { makeId as newId, sleep, type Sleep } from "../platform/clock-ids-and-timers.ts";
import { createLogger, type Logger } from "../platform/logger.ts";
import { openLog, type LogOverrides, type OpenedLog } from "../privacy/open-log.ts";
import { createFindLinkKeys } from "../privacy/person-keys.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";
import { createEraseHandler } from "../privacy/delete-erased-and-expired-keys.ts";
import { createSuppressionHashes } from "../privacy/suppression-hashes.ts";
import { startProjector } from "../projector/projector.ts";
import type { LogStore } from "../../events/event-types-and-codec.ts";

/** Replacements for parts of the process; mostly tests give them. */
export interface ReachlogOverrides extends LogOverrides {
  /** Logger of the process. Default: one that writes to `write`, with the log's clock. */
  readonly logger?: Logger;
  /** Receives the lines of the default logger. If absent, they are dropped. */
  readonly write?: (line: string) => void;
  readonly sleep?: Sleep;
  readonly random?: () => number;
  readonly holder?: string;
  readonly wallClock?: LogContext["wallClock"];
  readonly elapsedMs?: LogContext["elapsedMs"];
  readonly leaseScale?: number | undefined;
  /**
   * Number of positions by which a projection must lag behind the log to be folded in the background. Undefined: all
   * are folded before {@link openReachlog} resolves.
   */
  readonly lateAfter?: number | undefined;
  /** Number of positions between two snapshots of past states. Undefined: the default of {@link startProjector}. */
  readonly pastEvery?: number | undefined;
  /** Wraps the log that the projector folds states from. */
  readonly follow?: (log: LogStore) => LogStore;
}

/** An opened log whose projections are not folded yet. */
export interface UnfoldedLog extends LogContext {
  readonly encryptedLog: OpenedLog;
}

/** The role that a process has among the instances of its log. */
export interface Membership extends AsyncDisposable {
  /** True if this process saves snapshots while it follows the log. */
  readonly saves: () => boolean;
}

/** Options of a service that opens its log and joins the other instances of that log. */
export interface Joining<Member extends Membership> {
  /** Name under which a service owns a log in a file, for messages; undefined if several may use the log. */
  readonly owner: string | undefined;
  readonly onCommit: (commit: Commit) => void;
  /** Wraps the event log to measure and trace its appends. */
  readonly observe: (eventLog: EventLog) => EventLog;
  readonly join: (log: UnfoldedLog) => Promise<Member>;
}

/**
 * Opens the configured log, or creates it, with vault, keys and projections; disposing the context closes all in
 * reverse order. A service passes `joining`; a command does not, and may run beside a service. Throws as {@link
 * openLog} does.
 */
export async function openReachlog(config: Config, overrides?: ReachlogOverrides): Promise<Reachlog & AsyncDisposable>;
export async function openReachlog<Member extends Membership>(
  config: Config,
  overrides: ReachlogOverrides,
  joining: Joining<Member>,
): Promise<Reachlog & Member>;
export async function openReachlog(config: Config, overrides: ReachlogOverrides = {}, joining?: Joining<Membership>) {
  const { makeId = newId, write = () => {}, lateAfter, pastEvery } = overrides;
  const { clock, acceptLoss, acceptLostKeys, takeOverKeys, writerThread = joining !== undefined } = overrides;
  await using opening = new AsyncDisposableStack();

  const served = joining && { owner: joining.owner, onCommit: joining.onCommit, logger: overrides.logger };
  const accepted = { acceptLoss, acceptLostKeys, takeOverKeys, writerThread };
  const encryptedLog = opening.use(await openLog(config, { clock, makeId, ...accepted, ...served }));
  const { keyring, vault, logClock } = encryptedLog;
  const logger = overrides.logger ?? createLogger(config.logLevel, write, logClock.now);
  const written = createEventLog(encryptedLog, makeId);
  const log: UnfoldedLog = {
    encryptedLog,
    eventLog: joining?.observe(written) ?? written,
    clock: logClock.now,
    logger,
    makeId,
    sleep: overrides.sleep ?? sleep,
    random: overrides.random ?? Math.random,
    holder: overrides.holder ?? makeId(),
    wallClock: overrides.wallClock,
    elapsedMs: overrides.elapsedMs,
    leaseScale: overrides.leaseScale,
  };

  // A service joins the instances of its log here, before states are folded: joining refuses a log that contradicts its
  // checkpoint.
  const member = opening.use((await joining?.join(log)) ?? VISITOR);

  // `saves` returns true on the one instance that saves snapshots while it follows the log.
  const { saves } = member;
  const folding = { erase: createEraseHandler(keyring), saves, lateAfter, pastEvery, ...(joining && { logger }) };
  const projector = opening.use(await startProjector(overrides.follow?.(encryptedLog) ?? encryptedLog, folding));

  const context: Reachlog = {
    ...log,
    config,
    keyring,
    vault,
    logClock,
    projector,
    announce: createAnnounce(log, projector, listConfiguredChannels(config)),
    hashesOf: createSuppressionHashes(await vault.stableKey("suppression")),
    findLinkKeys: createFindLinkKeys(keyring),
  };
  const opened = opening.move();
  return { ...member, ...context, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Membership of a process, such as a command, that is no instance of the log. A service may run at the same time. */
const VISITOR: Membership = { saves: () => false, async [Symbol.asyncDispose]() {} };
