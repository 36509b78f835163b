import { listChannels } from "../../projections/deliveries.ts";
import { usedAt } from "../../projections/quota.ts";
import { createUsedStates } from "../account/link-and-unlink-account.ts";
import { isOfThisMachineOnly } from "../config/http.ts";
import { createConsole } from "../console/render-console.ts";
import type { ConsoleSettings } from "../console/page-context.ts";
import type { HttpContext } from "../http/http-context.ts";
import { createClientAddress } from "../http/access/client-address.ts";
import { createNotices } from "../http/server/form-routes.ts";
import { createAuthorizationCookie } from "../http/access/encrypted-cookie.ts";
import { createIdempotency } from "../http/server/idempotency.ts";
import { listHosts } from "../http/server/listen.ts";
import { createRateLimit, type DailyQuota } from "../http/access/rate-limit.ts";
import { createEventIntake } from "../http/server/event-intake.ts";
import { createSessions } from "../http/access/session.ts";
import { createVisits } from "../http/access/last-visit.ts";
import { createStreamPace } from "../http/streams/event-stream.ts";
import type { EventLog } from "../log/event-log.ts";
import { listHolders } from "../log/leases-and-roles.ts";
import { cosignedPosition } from "../log/cosigning.ts";
import { describeClockFault } from "../log/log-time-and-clock-skew.ts";
import { createLogVerifier } from "../log/verify-log.ts";
import { newestTime, quotaNow } from "../outreach/run-context.ts";
import { resetsAt } from "../outreach/quota-day.ts";
import { toOutreachRules } from "../outreach/run-rules.ts";
import { createVisitorSketch } from "../privacy/hash-visitor-for-counting.ts";
import { VERSION } from "../platform/version.ts";
import { createPageMoments } from "../projector/moment-of-console-page.ts";
import { createPastStates } from "../projector/past-states.ts";
import type { Projector } from "../projector/projector.ts";
import type { Account } from "../account/link-and-unlink-account.ts";
import { withSource } from "../config/parse-api-tokens.ts";
import { consoleSettings } from "./shown-configuration.ts";
import type { Authentication } from "../http/access/bearer-tokens.ts";
import type { FailureLimit } from "../http/access/failed-authentication-limit.ts";
import type { LoadShedding } from "../http/access/limit-requests-and-streams.ts";
import type { Delivery } from "../delivery/wait-for-outcome.ts";
import type { Runner } from "../outreach/start-run.ts";
import type { ServingContext } from "./open-to-serve.ts";

/** Parts of the service that start before the HTTP server and that its requests use. */
interface ServedParts {
  readonly authentication: Authentication;
  readonly failureLimit: FailureLimit;
  readonly delivery: Delivery;
  /** The linked account on X; undefined if X is not configured. */
  readonly account: Account | undefined;
  readonly runner: Runner | undefined;
  readonly load: LoadShedding;
  readonly awaySince: () => number | undefined;
  readonly isWritable: () => boolean;
  readonly stopping: AbortSignal;
}

/** The opened log, with all that HTTP requests may use of it. */
type ServedLog = Omit<ServingContext, "roles" | "isAlone" | "saves" | "reservedPort" | typeof Symbol.asyncDispose>;

/** Returns the context of the HTTP server; `overrides` are for tests. */
export function createHttpContext(
  context: ServedLog,
  parts: ServedParts,
  overrides: Partial<HttpContext> = {},
): HttpContext {
  const { config, eventLog, projector, logger, clock, encryptedLog, instances, vault, sleep } = context;
  const { authentication, delivery, load, stopping, account } = parts;
  const { http } = config;
  const { store } = eventLog;
  // Cookies and sessions are encrypted with keys that are derived from `master`.
  const { checkpoints, keyring, master } = encryptedLog;
  const site = new URL(http.publicUrl);
  const isLocal = isOfThisMachineOnly(http);
  const live = {
    instances: () => instances.live,
    awaySince: parts.awaySince,
    skewMs: () => context.logClock.skewMs(newestTime(projector)),
    clockFault: () => describeClockFault(live.skewMs()),
    roles: () => listRoles(eventLog, projector).catch(() => ({})),
  };
  const { quota = dailyQuota(context), past = createPastStates({ store, projector, stopping }) } = overrides;
  const file = config.log.kind === "sqlite" ? config.log.file : undefined;
  const cosigned =
    config.witness && (async () => cosignedPosition(checkpoints, (await checkpoints.loadKey()).publicKey));
  const tokens = authentication.list;
  const roles = () => listRoles(eventLog, projector);
  context.metrics.observe({ ...live, roles, cosigned, store, projector, delivery, quota, load, clock, file, tokens });
  const verifier = createLogVerifier(context, checkpoints);
  return {
    ...context,
    ...parts,
    ...live,
    past,
    version: VERSION,
    hosts: listHosts(http, config.links.base),
    clientAddress: createClientAddress(http.trustedProxies),
    isLocal,
    // Each instance admits its share of the limit, because a load balancer spreads the requests of one address over all
    // instances.
    anonymousLimit: createRateLimit(() => Math.ceil(http.rateLimitPerMinute / instances.live.length), clock),
    sessions: createSessions({ masterKey: master, authentication, site, isLocal, claims: vault, clock }),
    notices: createNotices(master, site, clock),
    visits: createVisits(master, site, clock),
    idempotency: createIdempotency(context, stopping),
    eventIntake: createEventIntake(eventLog, keyring.keys.revision, parts.isWritable, logger),
    placeVisitor: createVisitorSketch(keyring.keys, clock),
    quota,
    verifier,
    console: createConsole({
      moments: createPageMoments({ store, projector, past, clock, timezone: config.outreach.timezone }),
      live: {
        ...live,
        circuit: delivery.circuit,
        verification: () => verifier.progress,
        lookup: () => parts.runner?.lookup(),
      },
      settings: shownSettings(context, parts),
    }),
    streamPace: createStreamPace(() => load.arrivals, clock, sleep),
    account: account && {
      ...account,
      cookie: createAuthorizationCookie(master, site, clock),
      states: createUsedStates(vault, clock),
    },
    ...overrides,
  };
}

/** The configuration that the console shows. */
function shownSettings(context: ServedLog, { delivery, authentication }: ServedParts): ConsoleSettings {
  const { config, hashesOf } = context;
  return consoleSettings(config, delivery, {
    hashesOf,
    commonRules: async () => toOutreachRules(context),
    wantsToken: () => authentication.guardsConsole,
    tokens: () => withSource(authentication.list(), config.http),
  });
}

/**
 * Returns which instance holds which role. The roles of channels are left out while the deliveries are being folded.
 */
function listRoles(eventLog: EventLog, projector: Projector): ReturnType<HttpContext["roles"]> {
  const channels = projector.isFolded("deliveries") ? listChannels(projector.state("deliveries")) : [];
  return listHolders(eventLog, channels);
}

function dailyQuota(context: ServedLog): DailyQuota {
  const { projector } = context;
  const { dailyLimit: limit, timezone } = context.config.outreach;
  const now = () => quotaNow({ ...context, timezone });
  return {
    limit,
    used: () => usedAt(projector.state("quota"), now()),
    resetsAt: () => resetsAt(projector.state("quota"), limit, now()),
  };
}
