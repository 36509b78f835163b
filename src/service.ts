import { usedOn } from "../projections/quota.ts";
import { openCheckpoints } from "./checkpoint/checkpoints.ts";
import { makeId, systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { isLoopback } from "./config/urls.ts";
import { createAnnounce } from "./delivery/announce.ts";
import { createCredentialMark } from "./delivery/credential-mark.ts";
import { createDelivery, type Delivery } from "./delivery/delivery.ts";
import { startDispatcher } from "./delivery/dispatcher.ts";
import { createApp, type AppDeps } from "./http/app.ts";
import { createAuthCookie } from "./http/auth-cookie.ts";
import { createAuthentication } from "./http/auth.ts";
import { createIdempotency } from "./http/idempotency.ts";
import { hostsOf, listen, withPort } from "./http/listen.ts";
import { createRateLimit } from "./http/rate-limit.ts";
import { createSessions } from "./http/session.ts";
import { createJournal, type Journal } from "./journal.ts";
import { logFiles } from "./log-files.ts";
import { faultFields, type Logger } from "./log.ts";
import { missingPlaceholders } from "./outreach/message.ts";
import { logTime, today } from "./outreach/context.ts";
import { nextDayAt } from "./outreach/day.ts";
import { createRunner } from "./outreach/runner.ts";
import { openOutreach, type OutreachDeps } from "./outreach-parts.ts";
import { openChannels, openKey, openLog, outbound } from "./parts.ts";
import { startProjector, type Projector } from "./projector.ts";
import { VERSION } from "./version.ts";

/** The template asks for fields that no imported recipient has. */
export class TemplateFault extends Error {
  override readonly name = "TemplateFault";
  constructor(missing: readonly string[]) {
    super(
      `MESSAGE_TEMPLATE: no imported recipient has ${missing.join(", ")}; import it or give a fallback {{field|text}}`,
    );
  }
}

/** Where no chat is configured that says another. */
const DIGEST_AFTER_S = 30;

/** Failed authentications a minute from one address. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

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
}

/**
 * Opens the log, wires all parts, listens.
 * Throws StoreOwned, LogContradicted, SigningKeyRefused, KeyError, VaultKeyMismatch, TemplateFault, or the port's error.
 */
export async function startService(
  given: Config,
  log: Logger,
  { acceptLoss = false }: ServiceOptions = {},
): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const config = { ...given, http: await withPort(given.http) };
  const store = stack.use(await openLog(config, `reachlog serve, pid ${process.pid}, ${config.http.publicUrl}`));
  const failure = watchFailure(store.failed);
  const journal = createJournal(store, makeId);
  const files = logFiles(config.log.file);
  stack.use(await openCheckpoints({ journal, files, acceptLoss, clock: systemClock, log }));
  const projector = stack.use(await startProjector(store, log));
  const base: Base = { config, key: openKey(config), journal, projector, log };
  checkTemplate(base);

  const safeFetch = outbound(config);
  const channels = openChannels(config, safeFetch);
  const announce = createAnnounce(
    journal,
    channels.map(({ name }) => name),
    log,
  );
  const common = { journal, projector, clock: systemClock, random: Math.random, makeId, log, announce };
  const mark = createCredentialMark(base.key);
  const digestAfterMs = (config.chat?.digestAfterSeconds ?? DIGEST_AFTER_S) * 1000;
  const dispatchers = channels.map((channel) =>
    stack.use(startDispatcher({ ...common, channel, mark, digestAfterMs })),
  );
  const delivery = createDelivery(journal, projector, dispatchers);
  const outreach = startOutreach({ ...base, safeFetch, announce }, stack);
  const app = createApp(wireHttp(base, delivery, outreach, () => failure() === undefined));
  stack.use(listen(app, config.http));
  if (outreach !== undefined) {
    // Stopped before the server: whoever waits for a run is answered when it ends.
    stack.use(outreach.runner);
    // This process owns the log, so whoever held the run's lease is dead.
    void outreach.runner
      .recover({ steal: true })
      .catch((fault: unknown) => log.error("recovery failed", faultFields(fault)));
  }
  log.info("listening", { url: config.http.publicUrl, position: projector.position });

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
  readonly journal: Journal;
  readonly projector: Projector;
  readonly log: Logger;
}

/** The outreach agent; undefined when X is not configured. */
function startOutreach(deps: OutreachDeps, stack: AsyncDisposableStack) {
  const opened = openOutreach(deps, stack);
  if (opened === undefined) return undefined;
  const { context, ...link } = opened;
  const { config, journal, projector } = deps;
  return { ...link, journal, projector, pinnedHandle: config.x?.account, runner: createRunner(context) };
}

/** Placeholders that nobody can fill are told at start, before a run skips everybody. */
function checkTemplate({ config, projector }: Base): void {
  const { template } = config.outreach;
  const { people, fields } = projector.state("contacts");
  if (template === undefined || people.size === 0) return;
  const missing = missingPlaceholders(template, fields.keys());
  if (missing.length > 0) throw new TemplateFault(missing);
}

function wireHttp(
  base: Base,
  delivery: Delivery,
  outreach: ReturnType<typeof startOutreach>,
  isWritable: () => boolean,
): AppDeps {
  const { config, key, journal, projector, log } = base;
  const { http } = config;
  const authentication = createAuthentication(http);
  const failureLimit = createRateLimit(FAILED_AUTHENTICATIONS_PER_MINUTE, systemClock);
  const secure = http.publicUrl.startsWith("https:");
  const day = { projector, clock: systemClock, timezone: config.outreach.timezone };
  const limits = {
    limit: config.outreach.dailyLimit,
    used: () => usedOn(projector.state("quota"), today(day)),
    resetsAt: () => nextDayAt(day.timezone, logTime(day)),
  };
  return {
    admission: {
      authentication,
      hosts: hostsOf(http),
      isLocal: isLoopback(http.host),
      anonymousLimit: createRateLimit(http.rateLimitPerMinute, systemClock),
      failureLimit,
      makeId,
    },
    social: {
      runner: outreach?.runner,
      hasTemplate: config.outreach.template !== undefined,
      projector,
      limits,
      clock: systemClock,
    },
    authorization:
      outreach === undefined ? undefined : { ...outreach, cookie: createAuthCookie(key, secure, systemClock) },
    api: { journal, projector, delivery, version: VERSION, dispatchBots: config.bots === "dispatch", isWritable },
    console: {
      journal,
      projector,
      limits,
      failureLimit,
      sessions: createSessions(key, authentication, secure, systemClock),
    },
    idempotency: createIdempotency(journal),
    log,
  };
}
