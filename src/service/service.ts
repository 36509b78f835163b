import { usedAt } from "../../projections/quota.ts";
import { isFormerKeyGiven } from "../vault/master-key.ts";
import { keepStableKeys, stableKey } from "../vault/stable-keys.ts";
import { createUsedStates } from "../account/used-states.ts";
import { refuseLostVault } from "../vault/lost-vault.ts";
import { openVault, type Vault } from "../vault/vault.ts";
import { openSignedHeads } from "../log/signed-heads.ts";
import { recordRestore } from "../log/record-restore.ts";
import { makeId, systemClock } from "../platform/clock.ts";
import type { Config } from "../config/config.ts";
import { isLoopback } from "../config/urls.ts";
import { createAnnounce } from "../delivery/announce.ts";
import { createOutboxReader } from "../delivery/outbox-reader.ts";
import { createCredentialHash } from "../delivery/credential-mark.ts";
import { createDelivery, type Delivery } from "../delivery/delivery.ts";
import { systemTimer } from "../platform/timer.ts";
import { startDispatchers } from "../delivery/dispatchers.ts";
import { createAccount, createAuthorizationCookie } from "../http/account.ts";
import { openAuthenticator, type Authenticator } from "../http/authenticator.ts";
import { createApp, type AppDeps } from "../http/app.ts";
import { createClientAddress } from "../http/client-address.ts";
import { createIdempotency } from "../http/idempotency.ts";
import { hostsOf, listen, withPort } from "../http/listen.ts";
import { createLoadShedding, type LoadShedding } from "../http/load-shedding.ts";
import { createRateLimit } from "../http/rate-limit.ts";
import { createRequestLog } from "../http/request-log.ts";
import { createSessions } from "../http/session.ts";
import { createEventLog, type EventLog } from "../log/event-log.ts";
import { logFiles } from "../log/log-files.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { startClient } from "../networks/safe-fetch.ts";
import { missingPlaceholders } from "../template/template.ts";
import { quotaNow } from "../outreach/context.ts";
import { resetsAt } from "../outreach/quota.ts";
import { createRunner } from "../outreach/runner.ts";
import { openOutreach, type OutreachDeps } from "./open-outreach.ts";
import { masterKeyOf, openChannels, openKey, openLog, outbound } from "./open.ts";
import { erasing } from "../privacy/apply-erasures.ts";
import type { Keyring } from "../privacy/keyring.ts";
import { startRetention } from "../privacy/retention.ts";
import { startProjector, type Projector } from "../projector/projector.ts";
import { VERSION } from "../platform/version.ts";
import { ServiceError } from "../platform/service-error.ts";

/** A running service. Disposing it stops everything in the reverse order of its start. */
export interface Service extends AsyncDisposable {
  /** Where it listens. */
  readonly url: string;
  readonly projector: Projector;
  /** Resolves with the fault after which the service must exit: the log takes nothing more. */
  readonly failed: Promise<unknown>;
}

export interface ServiceOptions {
  /** Goes on with a log that does not hold what its checkpoint knew, and records that. */
  readonly acceptLoss?: boolean;
  /** Goes on without the keys of personal data, or without the vault, where they are lost. */
  readonly acceptLostKeys?: boolean;
}

/**
 * Opens the log, wires all parts, listens.
 * Throws StoreOwned, LogContradicted, SigningKeyRefused, KeyError, VaultKeyMismatch, TemplateFault, or the port's error.
 */
export async function startService(
  given: Config,
  logger: Logger,
  { acceptLoss = false, acceptLostKeys = false }: ServiceOptions = {},
): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const config = { ...given, http: await withPort(given.http) };
  const store = stack.use(
    await openLog(config, { owner: `reachlog serve, pid ${process.pid}, ${config.http.publicUrl}`, acceptLostKeys }),
  );
  const failure = watchFailure(store.failed);
  const eventLog = createEventLog(store, makeId);
  const files = logFiles(config.log.file);
  stack.use(await openSignedHeads({ eventLog, files, acceptLoss, clock: systemClock, logger }));
  await recordRestore(eventLog, logger);
  if (!acceptLostKeys) await refuseLostVault(eventLog, files.vault);
  const key = openKey(config);
  if (isFormerKeyGiven(masterKeyOf(config), key)) {
    logger.warn("REACHLOG_KEY holds the former key, which opens everything until the new one is put in its place");
  }
  const vault = stack.use(openVault(files.vault, key));
  keepStableKeys(vault, key);
  const projector = stack.use(await startProjector(store, logger, erasing(store.keyring)));
  stack.use(
    await startRetention({
      eventLog,
      keyring: store.keyring,
      days: config.retentionDays,
      clock: systemClock,
      timer: systemTimer,
      logger,
    }),
  );
  const base: Base = { config, key, vault, eventLog, keyring: store.keyring, projector, logger };
  checkTemplate(base);

  await startClient();
  const safeFetch = outbound(config);
  const channels = openChannels(config, safeFetch);
  const announce = createAnnounce({ eventLog, projector, configured: channels.map(({ name }) => name), logger });
  const log = { eventLog, projector, outboxReader: createOutboxReader(store) };
  const common = { ...log, clock: systemClock, random: Math.random, makeId, logger, announce };
  const mark = createCredentialHash(stableKey(vault, key, "credentials"));
  const digestAfterMs = config.digestAfterSeconds * 1000;
  const load = createLoadShedding();
  const requests = (): number => load.came;
  const dispatchers = stack.use(startDispatchers(channels, { ...common, mark, digestAfterMs, requests }));
  const delivery = createDelivery(eventLog, projector, dispatchers.all);
  const outreach = startOutreach({ ...base, safeFetch, announce }, stack);
  const access = openAuthenticator({ http: config.http, eventLog, logger }, stack);
  const isWritable = (): boolean => failure() === undefined;
  const app = createApp(wireHttp({ ...base, access, delivery, outreach, load, isWritable }));
  stack.use(listen(app, config.http, load));
  if (outreach !== undefined) {
    // Stopped before the server: whoever waits for a run is answered when it ends.
    stack.use(outreach.runner);
    // This process owns the log, so whoever held the run's lease is dead.
    void outreach.runner
      .recover({ steal: true })
      .catch((fault: unknown) => logger.error("recovery failed", errorFields(fault)));
  }
  // First of all: what is in flight lands while the run and the requests end, and has not to wait for its turn after them.
  stack.defer(dispatchers.holdClicks);
  logger.info("listening", { url: config.http.publicUrl, position: projector.position });

  const parts = stack.move();
  return {
    url: config.http.publicUrl,
    projector,
    failed: Promise.race([store.failed, projector.failed.catch((fault: unknown) => fault)]),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** The fault that stopped the log, once there is one. */
function watchFailure(failed: Promise<unknown>): () => unknown {
  let fault: unknown;
  void failed.then((reason) => {
    fault = reason;
  });
  return () => fault;
}

/** What every part is made from. */
interface Base {
  readonly config: Config;
  readonly key: Uint8Array;
  readonly vault: Vault;
  readonly eventLog: EventLog;
  readonly keyring: Keyring;
  readonly projector: Projector;
  readonly logger: Logger;
}

/** The outreach agent; undefined when X is not configured. */
function startOutreach(deps: OutreachDeps, stack: AsyncDisposableStack) {
  const opened = openOutreach(deps, stack);
  if (opened === undefined) return undefined;
  const { context, ...link } = opened;
  const { config, eventLog, projector } = deps;
  return { ...link, eventLog, projector, pinnedHandle: config.x?.account, runner: createRunner(context) };
}

/** Placeholders that nobody can fill are told at start, before a run skips everybody. */
function checkTemplate({ config, projector }: Base): void {
  const { template } = config.outreach;
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

/** What the app is made from. */
interface Served extends Base {
  readonly access: Authenticator;
  readonly delivery: Delivery;
  readonly outreach: ReturnType<typeof startOutreach>;
  readonly load: LoadShedding;
  readonly isWritable: () => boolean;
}

function wireHttp(served: Served): AppDeps {
  const { config, key, vault, eventLog, projector, logger, delivery, outreach, load, isWritable } = served;
  const { http } = config;
  const { authentication, failureLimit } = served.access;
  const isSecure = http.publicUrl.startsWith("https:");
  const clock = systemClock;
  const day = { projector, clock, timezone: config.outreach.timezone };
  return {
    authentication,
    failureLimit,
    hosts: hostsOf(http),
    clientAddress: createClientAddress(http.trustedProxies),
    isLocal: isLoopback(http.host) && http.trustedProxies.length === 0,
    anonymousLimit: createRateLimit(http.rateLimitPerMinute, clock),
    load,
    sessions: createSessions(key, authentication, isSecure, clock),
    idempotency: createIdempotency(eventLog, logger),
    eventLog,
    requestLog: createRequestLog(eventLog, isWritable),
    projector,
    delivery,
    dispatchBots: config.bots === "dispatch",
    runner: outreach?.runner,
    hasTemplate: config.outreach.template !== undefined,
    quota: {
      limit: config.outreach.dailyLimit,
      used: () => usedAt(projector.state("quota"), quotaNow(day)),
      resetsAt: () => resetsAt(projector.state("quota"), config.outreach.dailyLimit, quotaNow(day)),
    },
    account:
      outreach &&
      createAccount({
        ...outreach,
        cookie: createAuthorizationCookie(key, isSecure, clock),
        states: createUsedStates(vault, clock),
      }),
    version: VERSION,
    clock,
    makeId,
    logger,
  };
}
