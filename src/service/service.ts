import { readFile } from "node:fs/promises";
import type { DataOf, EventType, Recorded } from "../../events/catalog.ts";
import type { ProjectionName } from "../../projections/all.ts";
import type { Config } from "../config/config.ts";
import { createDelivery } from "../delivery/settlement.ts";
import { updateSubscriptions } from "../delivery/webhook-subscriptions.ts";
import { startDispatchers } from "../delivery/dispatcher.ts";
import { createOutboxReader } from "../delivery/outbox-window.ts";
import { createCredentialHash, createAnnounce } from "../delivery/suspension.ts";
import { createAuthentication } from "../http/access/bearer-tokens.ts";
import { createFailureLimit, type FailureLimit, shareFailures } from "../http/access/failure-limit.ts";
import { createLoadShedding } from "../http/access/load-shedding.ts";
import { recordFailures } from "../http/access/record-failures.ts";
import { recordTokenUse } from "../http/access/token-use.ts";
import { followTokensFile } from "../http/access/tokens-file.ts";
import { createApp } from "../http/app.ts";
import { listen, withPort } from "../http/server/listen.ts";
import { startArchiver } from "../log/archive.ts";
import { createEventLog, type PartDeps } from "../log/event-log.ts";
import { singleInstance, joinInstances } from "../log/instance-heartbeats.ts";
import { noticeCopy, recordRestore } from "../log/record-restore.ts";
import { createRoles, HARMLESS, ROLES } from "../log/lease.ts";
import { openSignedHeads } from "../log/signed-heads.ts";
import { type LogWatch, watchLog } from "../log/log-watchdog.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { startClient } from "../networks/safe-fetch.ts";
import { RUN_STATES } from "../outreach/context.ts";
import { createRunner, type Runner } from "../outreach/start-run.ts";
import { type Clock, makeId, sleep, systemTimer } from "../platform/clock.ts";
import { decodeUtf8 } from "../platform/decode-utf8.ts";
import { errorFields, type LogFields, type Logger, requestFields } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { untilAborted } from "../platform/signals.ts";
import { startRetention, createEraseHandler } from "../privacy/retention.ts";
import { type Projector, startProjector } from "../projector/projector.ts";
import { createFindLinkKeys } from "../recipients/record-consent.ts";
import { createSuppressionHashes } from "../recipients/suppress.ts";
import { missingPlaceholders } from "../template/template.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { deriveKey } from "../vault/derive-keys.ts";
import { appDeps } from "./app-deps.ts";
import { locateLog } from "../privacy/log-place.ts";
import { connectNetworks } from "./networks.ts";
import { type OpenedLog, openLog, openStoredLog, type StoredLog } from "../privacy/open-log.ts";
import { openAccount, outreachContext } from "./outreach.ts";
import { ownInstance } from "./shown-configuration.ts";

/**
 * Positions that are folded before the service listens: about a second. A service saves each state more often, so only
 * a changed projection is further behind, or that of a log whose snapshots are lost.
 */
const LATE_POSITIONS = 250_000;

/** A running service. Disposing it stops everything in the reverse order of its start. */
export type Service = Awaited<ReturnType<typeof startService>>;

export interface ServiceOptions {
  /** Continues with a log that lacks what its checkpoint knew, and records that. */
  readonly acceptLoss?: boolean;
  /** Continues without the keys of personal data, or without the vault, if they are lost. */
  readonly acceptLostKeys?: boolean;
  /** Continues with vault and keys that belong to another log, or to a later life of this one. */
  readonly takeOverKeys?: boolean;
  /** Opens a log in a file as if other instances had it open too. For tests only. */
  readonly isShared?: boolean;
  /** Positions behind the log from which a projection is folded while the service runs, for tests with short logs. */
  readonly lateAfter?: number;
  /** Replaces the machine's clock, for the demo, which lets the service write a history. */
  readonly clock?: Clock;
  /** A factor for the durations of all leases, for tests in real time. */
  readonly leaseScale?: number;
}

/**
 * Opens the log, wires all parts and listens, from top to bottom; stops from the bottom up. Throws what {@link openLog}
 * throws, a ServiceError (configuration), or the port's error.
 */
export async function startService(given: Config, logger: Logger, options: ServiceOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const config = { ...given, http: await withPort(given.http) };
  const { publicUrl } = config.http;
  const metrics = createMetrics(config.webhooks.map(({ name }) => name));
  const tracing = await openTraces(stack, config, logger);
  const opening = { logger, metrics, tracing, ...options };
  const { store, instances, leasing, roles, eventLog, projector, watch } = await openState(stack, config, opening);
  const { vault, keyring, logClock } = store;
  const clock = logClock.now;

  // The networks, and the deliveries to them.
  await startClient();
  const { channels, social } = connectNetworks(config, clock);
  const configured = channels.map(({ name }) => name);
  const announce = createAnnounce({ eventLog, projector, configured, logger });
  const load = createLoadShedding();
  const hashCredential = createCredentialHash(await vault.stableKey("credentials"));
  const dispatchers = stack.use(
    await onceFolded({ projector, logger }, ["deliveries"], async () => {
      await updateSubscriptions({ eventLog, projector, sleep, random: Math.random, hashCredential }, config.webhooks);
      return startDispatchers(channels, {
        roles,
        eventLog,
        projector,
        outboxReader: createOutboxReader(store),
        clock,
        random: Math.random,
        makeId,
        logger,
        announce,
        isShared: !leasing.isAlone,
        hashCredential,
        digestAfterMs: config.digestAfterSeconds * 1000,
        requests: () => load.arrivals,
        metrics: metrics.dispatches,
        tracing,
      });
    }),
  );
  const delivery = createDelivery({ eventLog, projector, clock }, channels);

  // The account, and the outreach agent that writes in its name.
  const hashesOf = createSuppressionHashes(await vault.stableKey("suppression"));
  const findLinkKeys = createFindLinkKeys(keyring);
  const people = { vault, hashesOf, findLinkKeys, keyring };
  const base = { ...leasing, config, ...people, logClock, eventLog, projector, logger, announce };
  const account = social && stack.use(openAccount({ ...base, social }));
  const runner = account && createRunner(outreachContext({ ...base, account }));

  // HTTP.
  const limit = createLogFailureLimit(config, store);
  const access = openAuthenticator({ limit, eventLog, clock, logger }, config, stack);
  const isWritable = writableUntil(watch);
  const stopping = new AbortController();
  const { awaySince } = watch;
  const http = { awaySince, ...access, load, metrics, tracing, isWritable, stopping: stopping.signal };
  const served = { ...base, ...http, openedLog: store, instances, delivery, account, runner };
  stack.use(await listen(createApp(appDeps(served)), config.http, load));
  // Aborts before the server stops, which waits for its answers: streams of events never end by themselves.
  stack.defer(() => stopping.abort());
  if (runner !== undefined) {
    // Stops before the server, so that callers that wait for a run are answered when it ends.
    stack.use(runner);
    const recover = async () => startRecovery(runner, leasing.isAlone, logger);
    stack.use(await onceFolded({ projector, logger }, RUN_STATES, recover));
  }
  // Stops first: clicks in flight complete while the run and the requests end, not after them.
  stack.defer(() => dispatchers.begun?.holdClicks());
  logger.info("listening", { url: publicUrl, position: projector.position });

  const parts = stack.move();
  return {
    url: publicUrl,
    projector,
    /** Resolves with the fault after which the service must exit, because the log accepts no more appends. */
    failed: Promise.race([watch.failed, projector.failed.catch((fault: unknown) => fault)]),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Closes the run of a dead process. The runner waits for this when it stops. */
function startRecovery(runner: Runner, steal: boolean, logger: Logger): AsyncDisposable {
  void runner.recover({ steal }).catch((fault: unknown) => logger.error("recovery failed", errorFields(fault)));
  return { async [Symbol.asyncDispose]() {} };
}

/**
 * Begins a part that reads these states: before it resolves if they are complete, else once they are. Disposing it
 * stops the part. If a part fails to begin later, that is logged, and the next start tries again.
 */
async function onceFolded<Part extends AsyncDisposable>(
  { projector, logger }: { readonly projector: Projector; readonly logger: Logger },
  names: readonly ProjectionName[],
  begin: () => Promise<Part>,
) {
  const stopping = new AbortController();
  let begun: Part | undefined;
  const beginLater = async (): Promise<void> => {
    await Promise.race([projector.folded(names), untilAborted(stopping.signal)]);
    if (!stopping.signal.aborted) begun = await begin();
  };
  let beginning: Promise<void> = Promise.resolve();
  if (names.every(projector.isFolded)) begun = await begin();
  else
    beginning = beginLater().catch((fault: unknown) =>
      logger.error("a part of the service did not start", errorFields(fault)),
    );
  return {
    /** Undefined until it has begun. */
    get begun() {
      return begun;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await beginning;
      await begun?.[Symbol.asyncDispose]();
    },
  };
}

/** Loads the libraries only if traces are collected. */
async function openTraces(
  stack: AsyncDisposableStack,
  { tracing }: Config,
  logger: Logger,
): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined;
  const { openTracing } = await import("../tracing/tracing.ts");
  return stack.use(openTracing({ ...tracing, logger }));
}

interface OpenStateOptions extends ServiceOptions {
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "appends">;
}

/** Opens the log with its keys, its vault and its projections. Refuses parts that do not belong together. */
async function openState(
  stack: AsyncDisposableStack,
  config: Config,
  { logger, metrics, tracing, isShared = false, leaseScale, lateAfter = LATE_POSITIONS, ...accepted }: OpenStateOptions,
) {
  const own = ownInstance(config);
  // A process that owns the log knows that no other instance lives.
  const isAlone = config.log.kind === "sqlite" && !isShared;
  const owner = isAlone ? `reachlog serve, pid ${process.pid}, ${config.http.publicUrl}` : undefined;
  await noticeCopy(locateLog(config).store, own.id, logger);
  const store = stack.use(await openLog(config, { owner, ...accepted, onCommit: metrics.appends.onCommit, logger }));
  const { keyring, isFormerGiven, logClock } = store;
  const clock = logClock.now;
  if (isFormerGiven) {
    logger.warn("REACHLOG_KEY holds the former key, which stays valid until the new one replaces it");
  }
  for (const warning of await locateLog(config).store.warnings()) logger.warn(warning);
  const joining = { store, elapsedMs: () => performance.now(), sleep, logger };
  const instances = stack.use(isAlone ? singleInstance(own) : await joinInstances(joining, own));
  const measured = metrics.appends.measured(createEventLog(store, makeId));
  const eventLog = tracing === undefined ? measured : tracing.traced(measured);
  const leasing = { holder: own.id, isAlone, leaseScale };
  const roles = createRoles({ ...leasing, eventLog, sleep, logger });
  stack.use(
    await openSignedHeads({
      roles,
      eventLog,
      checkpoints: store.checkpoints,
      acceptLoss: accepted.acceptLoss === true,
      clock,
      logger,
      witness: config.witness,
    }),
  );
  await store.goOn();
  await recordRestore(eventLog, logger);
  const projector = stack.use(
    await startProjector(store, {
      logger,
      erase: createEraseHandler(keyring),
      saves: instances.isOldest,
      lateAfter,
    }),
  );
  stack.use(logChanges(projector, logger));
  const days = config.retentionDays;
  const retention = { eventLog, keyring, days, logClock, timer: systemTimer, logger };
  stack.use(await roles.start({ name: ROLES.retention, ...HARMLESS }, () => startRetention(retention)));
  const { archiveAfterDays } = config;
  if (archiveAfterDays !== undefined) {
    const archive = async () => startArchiver({ eventLog, clock, logger }, archiveAfterDays);
    stack.use(await roles.start({ name: ROLES.archive, ...HARMLESS }, archive));
  }
  checkTemplate(config, projector);
  const reopen = (): Promise<StoredLog> => openStoredLog(config);
  const askKeys = keyring.keys.revision;
  const watched = { store, askKeys, projector, reopen, logClock, sleep, logger };
  const watch = stack.use(watchLog(watched));
  return { store, instances, leasing, roles, eventLog, projector, watch };
}

/** Authenticates callers, and limits those that fail. Disposing `stack` records all uses and failures until then. */
function openAuthenticator(
  { limit, ...deps }: Pick<PartDeps, "eventLog" | "clock" | "logger"> & { readonly limit: FailureLimit },
  { http }: Config,
  stack: AsyncDisposableStack,
) {
  const { note } = stack.use(recordTokenUse({ ...deps, sleep }));
  const authentication = createAuthentication(http, deps.clock, undefined, note);
  const failureLimit = stack.use(recordFailures({ ...deps, limit, sleep }));
  if (http.tokensFile !== undefined) {
    const read = async (path: string) => decodeUtf8(await readFile(path));
    stack.use(followTokensFile({ ...deps, ...http.tokensFile, tokens: http.tokens, authentication, read, sleep }));
  }
  return { authentication, failureLimit };
}

/** A log in a file has one service. All services of a log on a database server count together. */
function createLogFailureLimit({ log }: Config, { master, vault, logClock: { now: clock } }: OpenedLog): FailureLimit {
  if (log.kind === "sqlite") return createFailureLimit(clock);
  const key = deriveKey(master, "failed-authentications");
  return shareFailures({ claim: vault.claim, key, clock });
}

/** Returns a function that is false once a fault has stopped the log, and while it is unreachable. */
function writableUntil({ failed, awaySince }: LogWatch): () => boolean {
  let hasFailed = false;
  void failed.then(() => (hasFailed = true));
  return () => !hasFailed && awaySince() === undefined;
}

/** Refuses to start with placeholders that no contact can fill: a run would skip all recipients. */
function checkTemplate(config: Config, projector: Projector): void {
  const { template } = config.outreach;
  // While the recipients are not known yet, the runs say what each of them lacks.
  if (!projector.isFolded("contacts")) return;
  const { people, fields } = projector.state("contacts");
  if (template === undefined || people.size === 0) return;
  const missing = missingPlaceholders(template, fields.keys());
  if (missing.length > 0) {
    throw new ServiceError(
      "configuration",
      `MESSAGE_TEMPLATE: no imported recipient has ${missing.join(", ")}; import it or give a fallback {{field|text}}`,
    );
  }
}

/** The types of event that get a line for the operator, each with level, message, and the data that it shows. */
const LOGGED: {
  readonly [Type in EventType]?: readonly ["info" | "warn", string, readonly (keyof DataOf<Type>)[]];
} = {
  ChannelSuspended: ["warn", "a channel is suspended", ["channel", "network", "detail"]],
  ChannelResumed: ["info", "a channel is resumed", ["channel", "why"]],
  RunStarted: ["info", "a run has started", ["run_id", "dry_run"]],
  RunFinished: ["info", "a run has ended", ["run_id", "reason", "sent", "skipped", "failed", "in_doubt"]],
  DryRunFinished: ["info", "a dry run has ended", ["run_id", "reason"]],
  RunAbandoned: ["warn", "a run has ended with its process", ["run_id", "sent", "skipped", "failed", "in_doubt"]],
};

/**
 * Logs a line for the operator when a channel is suspended or resumed, and when a run begins or ends, whether by this
 * service, a command, or another instance.
 */
export function logChanges(projector: Pick<Projector, "listen">, logger: Logger): Disposable {
  const log = ({ type, position, data, meta }: Recorded): void => {
    const logged = LOGGED[type];
    if (logged === undefined) return;
    const [level, message, shown] = logged;
    const fields = Object.fromEntries(shown.map((field) => [field, (data as LogFields)[field]]));
    logger[level](message, { position, ...fields, ...requestFields(meta) });
  };
  return { [Symbol.dispose]: projector.listen(log) };
}
