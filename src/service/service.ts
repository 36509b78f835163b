import { watchFreeTexts } from "../delivery/warn-of-few-free-messages.ts";
import { readFile } from "node:fs/promises";
import type { DataOf, EventType, Recorded } from "../../events/event-types-and-codec.ts";
import type { ProjectionName } from "../../projections/all.ts";
import type { Account } from "../account/link-and-unlink-account.ts";
import type { Config } from "../config/config.ts";
import { createDelivery } from "../delivery/wait-for-outcome.ts";
import { updateSubscriptions } from "../delivery/webhook-subscriptions.ts";
import { startDispatchers } from "../delivery/dispatcher.ts";
import { createCredentialHash } from "../delivery/suspend-channel-and-alert-operator.ts";
import { createAuthentication } from "../http/access/bearer-tokens.ts";
import { createFailureLimit, type FailureLimit, shareFailures } from "../http/access/failed-authentication-limit.ts";
import { createLoadShedding } from "../http/access/limit-requests-and-streams.ts";
import { recordFailures } from "../http/access/record-failed-authentications.ts";
import { recordTokenUse } from "../http/access/token-use.ts";
import { followTokensFile } from "../http/access/follow-tokens-file.ts";
import { createApp } from "../http/app.ts";
import { listen } from "../http/server/listen.ts";
import { startArchiver } from "../log/archive-old-events.ts";
import { HARMLESS, ROLES } from "../log/leases-and-roles.ts";
import { type LogWatch, watchLog } from "../log/watch-for-lost-or-replaced-log.ts";
import type { SignalStream } from "../networks/network.ts";
import { startClient } from "../networks/safe-fetch.ts";
import { RUN_STATES } from "../outreach/run-context.ts";
import { followSignals } from "../outreach/signals/follow-messages-and-receipts.ts";
import { createRunner, type Runner } from "../outreach/start-run.ts";
import { decodeUtf8 } from "../platform/decode-utf8.ts";
import { errorFields, type LogFields, type Logger, requestFields } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { untilAborted } from "../platform/signals.ts";
import { startRetention } from "../privacy/delete-erased-and-expired-keys.ts";
import type { Projector } from "../projector/projector.ts";
import { missingPlaceholders } from "../template/template.ts";
import { deriveKey } from "../vault/derive-keys.ts";
import { createHttpContext } from "./http-context.ts";
import { openToServe, type ServiceOptions, type ServingContext } from "./open-to-serve.ts";
import { connectNetworks } from "./connect-networks.ts";
import { openStoredLog } from "../privacy/open-log.ts";
import { openAccount, outreachContext } from "./open-account-and-outreach.ts";

/** A running service. Disposing it stops everything in the reverse order of its start. */
export type Service = Awaited<ReturnType<typeof startService>>;

/** Opens the log and serves it. Throws what {@link openToServe} and {@link serve} throw. */
export async function startService(config: Config, logger: Logger, options?: ServiceOptions) {
  await using starting = new AsyncDisposableStack();
  const context = starting.use(await openToServe(config, logger, options));
  const served = starting.use(await serve(context));
  const started = starting.move();
  return { ...served, projector: context.projector, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/**
 * Starts the roles, the dispatchers, the outreach agent and the listener on an open log, from top to bottom; disposing
 * it stops them from the bottom up. Throws a ServiceError (configuration), or the port's error.
 */
export async function serve(context: ServingContext) {
  const { config, logger, metrics, projector, roles, tracing, vault } = context;
  await using stack = new AsyncDisposableStack();
  stack.use(logChanges(projector, logger));
  if (config.messaging?.provider === "whatsapp") stack.use(watchFreeTexts(context));
  await startUpkeep(stack, context);
  checkTemplate(config, projector);
  const watch = stack.use(
    watchLog({ ...context, askKeys: context.keyring.keys.revision, reopen: () => openStoredLog(config) }),
  );

  // From here on, requests may go out: the clients of the networks are created, and the dispatchers start to use them.
  await startClient();
  const { channels, social } = connectNetworks(config, context.clock);
  const load = createLoadShedding();
  const hashCredential = createCredentialHash(await vault.stableKey("credentials"));
  const dispatchers = stack.use(
    await onceFolded(context, ["deliveries"], async () => {
      await updateSubscriptions(context, config.webhooks, hashCredential);
      return startDispatchers(context, channels, roles, {
        isShared: !context.isAlone,
        hashCredential,
        digestAfterMs: config.digestAfterSeconds * 1000,
        requests: () => load.arrivals,
        metrics: metrics.dispatches,
        tracing,
      });
    }),
  );
  const delivery = createDelivery(context, channels);

  // Opens the linked account, and creates the runner, which starts runs that send messages as this account.
  const account = social && stack.use(openAccount(context, social));
  const runner = account && createRunner(outreachContext(context, account));

  // Creates the HTTP server, and the parts that only its requests use.
  const access = openAuthenticator(context, stack);
  const isWritable = writableUntil(watch);
  const stopping = new AbortController();
  const parts = { ...access, awaySince: watch.awaySince, load, isWritable, delivery, account, runner };
  const http = createHttpContext(context, { ...parts, stopping: stopping.signal });
  const app = createApp(http);
  await context.reservedPort[Symbol.asyncDispose]();
  stack.use(await listen(app, config.http, load));
  // Streams of events never end by themselves, so they are aborted before the server stops, which waits for its
  // responses.
  stack.defer(() => stopping.abort());
  if (account !== undefined && runner !== undefined) {
    // The runner stops before the server, so that callers who wait for their run get an answer.
    stack.use(runner);
    const recover = async () => startRecovery(runner, context.isAlone, logger);
    stack.use(await onceFolded(context, RUN_STATES, recover));
    stack.use(await startSignals(context, account, social?.stream));
  }
  // A stop begins with this. No further clicks are dispatched, so that requests to channels complete while the run and
  // the HTTP requests end, and not after them.
  stack.defer(() => dispatchers.begun?.holdClicks());
  const { publicUrl: url } = config.http;
  logger.info("listening", { url, position: projector.position });

  const running = stack.move();
  return {
    url,
    /**
     * Resolves with a fault after which the service must exit: the store failed, the log lost events or was replaced,
     * or the projector stopped.
     */
    failed: Promise.race([watch.failed, projector.failed.catch((fault: unknown) => fault)]),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Starts the periodic work on the log, such as retention, that only one instance does at a time. */
async function startUpkeep(stack: AsyncDisposableStack, context: ServingContext): Promise<void> {
  const { roles } = context;
  const { retentionDays, archiveAfterDays } = context.config;
  stack.use(await roles.start({ name: ROLES.retention, ...HARMLESS }, () => startRetention(context, retentionDays)));
  if (archiveAfterDays === undefined) return;
  const archive = async () => startArchiver(context, archiveAfterDays);
  stack.use(await roles.start({ name: ROLES.archive, ...HARMLESS }, archive));
}

/**
 * Terms of the lease for following the network's signals. After a crash, signals are missed no longer than the lease
 * lasts.
 */
const SIGNAL_TERMS = { name: ROLES.signals, ttlMs: 15_000, renewMs: 5_000 };

/**
 * Starts to follow the network's signals (notifications of messages and read receipts), which one instance at a time
 * does under a lease. Does nothing without a configured stream of signals.
 */
async function startSignals(
  context: ServingContext,
  account: Account,
  stream: SignalStream | undefined,
): Promise<AsyncDisposable> {
  if (stream === undefined) return new AsyncDisposableStack();
  const signals = { ...outreachContext(context, account), stream };
  return onceFolded(context, [...RUN_STATES, "signals"], () =>
    context.roles.start(SIGNAL_TERMS, async (lease) => followSignals(signals, lease)),
  );
}

/**
 * Closes the run that a dead process left open. Disposing the result does not wait for that, because disposing the
 * runner does.
 */
function startRecovery(runner: Runner, steal: boolean, logger: Logger): AsyncDisposable {
  void runner
    .recover({ steal })
    .catch((fault: unknown) => logger.error("the recovery of a dead run failed", errorFields(fault)));
  return { async [Symbol.asyncDispose]() {} };
}

/**
 * Starts a part of the service once these projections are folded; if they are folded already, before this resolves.
 * Disposing the result stops the part. If it fails to start later, that is logged, and the service's next start tries
 * again.
 */
async function onceFolded<Part extends AsyncDisposable>(
  { projector, logger }: ServingContext,
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
    /** The part of the service that had to wait for its projections, once it has started; undefined before that. */
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

/**
 * Creates the authenticator of callers, which also limits failed attempts. Disposing `stack` records all uses of tokens
 * and failures until then.
 */
function openAuthenticator(context: ServingContext, stack: AsyncDisposableStack) {
  const { http } = context.config;
  const { note } = stack.use(recordTokenUse(context));
  const authentication = createAuthentication(http, context.clock, undefined, note);
  const failureLimit = stack.use(recordFailures(context, createLogFailureLimit(context)));
  if (http.tokensFile !== undefined) {
    const read = async (path: string) => decodeUtf8(await readFile(path));
    stack.use(followTokensFile(context, { ...http.tokensFile, tokens: http.tokens, authentication, read }));
  }
  return { authentication, failureLimit };
}

/**
 * Creates the limit on failed authentications. Services on a log on a server count together; a log in a file has only
 * one service.
 */
function createLogFailureLimit({ config, encryptedLog, vault, clock }: ServingContext): FailureLimit {
  if (config.log.kind === "sqlite") return createFailureLimit(clock);
  const key = deriveKey(encryptedLog.master, "failed-authentications");
  return shareFailures({ claim: vault.claim, key, clock });
}

/**
 * Returns a function that is true if the log can be written: not after a fault that stopped the log, nor while the log
 * is unreachable.
 */
function writableUntil({ failed, awaySince }: LogWatch): () => boolean {
  let hasFailed = false;
  void failed.then(() => (hasFailed = true));
  return () => !hasFailed && awaySince() === undefined;
}

/**
 * Throws if the message template has placeholders for which no contact has a value, because a run would skip all
 * recipients.
 */
function checkTemplate(config: Config, projector: Projector): void {
  const { template } = config.outreach;
  // While the contacts are still being folded, nothing can be checked. A run records what each recipient lacks.
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

/** Event types for which the operator's log gets a line: its level, its message, and the data that it shows. */
const LOGGED: {
  readonly [Type in EventType]?: readonly ["info" | "warn", string, readonly (keyof DataOf<Type>)[]];
} = {
  ChannelSuspended: ["warn", "a channel is suspended", ["channel", "network", "detail"]],
  ChannelResumed: ["info", "a channel is resumed", ["channel", "why"]],
  RunStarted: ["info", "a run has started", ["run_id", "dry_run"]],
  RunFinished: ["info", "a run has ended", ["run_id", "reason", "sent", "skipped", "failed", "in_doubt"]],
  DryRunFinished: ["info", "a dry run has ended", ["run_id", "reason"]],
  RunAbandoned: [
    "warn",
    "a run has ended because its process died",
    ["run_id", "sent", "skipped", "failed", "in_doubt"],
  ],
};

/**
 * Logs a line for the operator when a channel is suspended or resumed, and when a run begins or ends, whether by this
 * service, a command, or another instance.
 */
export function logChanges(projector: Projector, logger: Logger): Disposable {
  const log = ({ type, position, data, meta }: Recorded): void => {
    const logged = LOGGED[type];
    if (logged === undefined) return;
    const [level, message, shown] = logged;
    const fields = Object.fromEntries(shown.map((field) => [field, (data as LogFields)[field]]));
    logger[level](message, { position, ...fields, ...requestFields(meta) });
  };
  return { [Symbol.dispose]: projector.listen(log) };
}
