import type { Config } from "../config/config.ts";
import { withPort } from "../http/server/listen.ts";
import { type Instance, joinInstances, singleInstance } from "../log/instance-heartbeats.ts";
import { createRoles } from "../log/leases-and-roles.ts";
import { noticeCopy, recordRestore } from "../log/notice-and-record-restore.ts";
import { openSignedHeads } from "../log/sign-heads-and-prove-events.ts";
import { listConfiguredChannels } from "../config/optional-parts.ts";
import { createMetrics } from "../metrics/metrics.ts";
import type { Logger } from "../platform/logger.ts";
import { locateLog } from "../privacy/locate-log.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { openReachlog, type ReachlogOverrides, type UnfoldedLog } from "./open-reachlog.ts";
import { ownInstance } from "./shown-configuration.ts";

/**
 * The service folds a projection before it listens if it lags by at most this number of events, which takes about a
 * second. A projection whose code changed or whose snapshots are lost may lag further, and is folded in the background.
 */
const LATE_POSITIONS = 250_000;

export interface ServiceOptions extends ReachlogOverrides {
  /** True to open a log in a file as if other instances used it too. For tests only. */
  readonly isShared?: boolean;
}

/** Context of a process that serves a log as one of its instances. */
export type ServingContext = Awaited<ReturnType<typeof openToServe>>;

/**
 * Opens the log as one of its instances, and refuses a vault or keys of another log. Throws what {@link openReachlog}
 * throws, and a ServiceError (configuration) if the other instances have other settings.
 */
export async function openToServe(given: Config, logger: Logger, options: ServiceOptions = {}) {
  await using opening = new AsyncDisposableStack();
  const { http, reserved } = await withPort(given.http);
  const reservedPort = opening.use(reserved);
  const config = { ...given, http };
  const { isShared = false, lateAfter = LATE_POSITIONS, ...overrides } = options;
  const isAlone = config.log.kind === "sqlite" && !isShared;
  const own = ownInstance(config);
  const metrics = createMetrics(listConfiguredChannels(config));
  const { measured, onCommit } = metrics.appends;
  const tracing = await openTraces(opening, config, logger);
  await noticeCopy(locateLog(config).store, own.id, logger);
  const context = opening.use(
    await openReachlog(
      config,
      { ...overrides, logger, lateAfter, holder: own.id },
      {
        owner: isAlone ? `reachlog serve, pid ${process.pid}, ${config.http.publicUrl}` : undefined,
        onCommit,
        observe: (eventLog) => tracing?.traced(measured(eventLog)) ?? measured(eventLog),
        join: async (log) => ({ ...(await joinLog(log, { config, own, isAlone, ...overrides })), metrics, tracing }),
      },
    ),
  );
  const opened = opening.move();
  return { ...context, reservedPort, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

interface JoinOptions {
  readonly config: Config;
  readonly own: Instance;
  readonly isAlone: boolean;
  readonly acceptLoss?: boolean | undefined;
}

/** Announces this process to the other instances, and compares the log with its last signed head. */
async function joinLog(log: UnfoldedLog, { config, own, isAlone, acceptLoss }: JoinOptions) {
  const { encryptedLog, eventLog, logger } = log;
  await using joining = new AsyncDisposableStack();
  if (encryptedLog.isFormerGiven)
    logger.warn("REACHLOG_KEY holds the former key, which stays valid until the new one replaces it");
  for (const warning of await locateLog(config).store.warnings()) logger.warn(warning);
  const instances = joining.use(isAlone ? singleInstance(own) : await joinInstances(log, own));
  const roles = createRoles(log, isAlone);
  const signing = { ...log, checkpoints: encryptedLog.checkpoints, witness: config.witness };
  joining.use(await openSignedHeads(signing, roles, acceptLoss));
  await encryptedLog.goOn();
  await recordRestore(eventLog, logger);
  const joined = joining.move();
  const saves = instances.isOldest;
  return { instances, roles, isAlone, saves, [Symbol.asyncDispose]: () => joined.disposeAsync() };
}

/** Loads the tracing libraries, but only if traces are collected. */
async function openTraces(
  stack: AsyncDisposableStack,
  { tracing }: Config,
  logger: Logger,
): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined;
  const { openTracing } = await import("../tracing/tracing.ts");
  return stack.use(openTracing({ ...tracing, logger }));
}
