import { listChannels } from "../../projections/deliveries.ts";
import { usedAt } from "../../projections/quota.ts";
import { createUsedStates } from "../account/link.ts";
import type { Config } from "../config/config.ts";
import { isOfThisMachineOnly } from "../config/http.ts";
import { createConsole } from "../console/console.ts";
import type { Announce } from "../delivery/suspension.ts";
import type { AppDeps } from "../http/deps.ts";
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
import type { Instances } from "../log/instance-heartbeats.ts";
import type { EventLog } from "../log/event-log.ts";
import { listHolders } from "../log/lease.ts";
import { cosignedPosition } from "../log/cosigning.ts";
import { signHeadNow, proveEvent } from "../log/signed-heads.ts";
import { createLogVerifier } from "../log/verifier.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { newestTime, quotaNow } from "../outreach/context.ts";
import { resetsAt } from "../outreach/quota-day.ts";
import { makeId, sleep, type Clock } from "../platform/clock.ts";
import { createVisitorSketch } from "../privacy/visitor-sketch.ts";
import { VERSION } from "../platform/version.ts";
import { createPastStates } from "../projector/past-states.ts";
import type { Projector } from "../projector/projector.ts";
import type { Vault } from "../vault/vault.ts";
import type { Account } from "./outreach.ts";
import type { OpenedLog } from "../privacy/open-log.ts";
import { withSource } from "../config/tokens.ts";
import { consoleSettings } from "./shown-configuration.ts";

interface Served extends Pick<
  AppDeps,
  | "authentication"
  | "failureLimit"
  | "hashesOf"
  | "findLinkKeys"
  | "eventLog"
  | "projector"
  | "logger"
  | "delivery"
  | "runner"
  | "load"
  | "tracing"
  | "awaySince"
  | "stopping"
> {
  readonly config: Config;
  readonly vault: Vault;
  readonly openedLog: OpenedLog;
  readonly instances: Instances;
  readonly announce: Announce;
  readonly account: Account | undefined;
  readonly metrics: Metrics;
  readonly isWritable: () => boolean;
}

/** Returns the server's dependencies: the given parts, and those that the server alone needs. */
export function appDeps(served: Served): AppDeps {
  const { config, eventLog, projector, logger, delivery, load, openedLog, instances, stopping, authentication } =
    served;
  const { http } = config;
  const { store } = eventLog;
  // Cookies and sessions are encrypted with keys derived from the master key.
  const { checkpoints, master } = openedLog;
  const { now: clock, skewMs: skewAt } = openedLog.logClock;
  const site = new URL(http.publicUrl);
  const isLocal = isOfThisMachineOnly(http);
  const live = {
    instances: () => instances.live,
    awaySince: served.awaySince,
    skewMs: () => skewAt(newestTime(projector)),
    roles: () => listRoles(eventLog, projector),
  };
  const quota = dailyQuota(config, projector, clock);
  const file = config.log.kind === "sqlite" ? config.log.file : undefined;
  const cosigned =
    config.witness && (async () => cosignedPosition(checkpoints, (await checkpoints.loadKey()).publicKey));
  const tokens = authentication.list;
  served.metrics.observe({ ...live, cosigned, store, projector, delivery, quota, load, clock, file, tokens });
  const verifier = createLogVerifier({ eventLog, checkpoints, clock, logger, announce: served.announce });
  const past = createPastStates({ store, projector, stopping });
  return {
    ...served,
    ...live,
    past,
    clock,
    sleep,
    random: Math.random,
    version: VERSION,
    hosts: listHosts(http, config.links.base),
    clientAddress: createClientAddress(http.trustedProxies),
    isLocal,
    // Each instance admits its share, because a load balancer spreads one address over all of them.
    anonymousLimit: createRateLimit(() => Math.ceil(http.rateLimitPerMinute / instances.live.length), clock),
    sessions: createSessions({ masterKey: master, authentication, site, isLocal, claims: served.vault, clock }),
    notices: createNotices(master, site, clock),
    visits: createVisits(master, site, clock),
    idempotency: createIdempotency({ eventLog, sleep, logger, makeId, stopping }),
    encryptedLog: openedLog,
    eventIntake: createEventIntake(eventLog, openedLog.keyring.keys.revision, served.isWritable, logger),
    placeVisitor: createVisitorSketch(openedLog.keyring.keys, clock),
    quota,
    verifier,
    signHead: () => signHeadNow(store, checkpoints, clock),
    proveEvent: (position) => proveEvent(store, checkpoints, clock, position),
    console: createConsole({
      store,
      projector,
      past,
      live: { ...live, circuit: delivery.circuit, verification: () => verifier.progress },
      settings: consoleSettings(config, delivery, {
        hashesOf: served.hashesOf,
        wantsToken: () => authentication.guardsConsole,
        tokens: () => withSource(authentication.list(), http),
      }),
      clock,
    }),
    streamPace: createStreamPace(() => load.arrivals, clock, sleep),
    account: served.account && {
      ...served.account,
      eventLog,
      projector,
      pinnedHandle: config.x?.account,
      cookie: createAuthorizationCookie(master, site, clock),
      states: createUsedStates(served.vault, clock),
    },
  };
}

/**
 * Returns the holders of the roles: without those of channels while the deliveries are folded, and none while the log
 * is unreachable.
 */
function listRoles(eventLog: EventLog, projector: Projector): ReturnType<AppDeps["roles"]> {
  const channels = projector.isFolded("deliveries") ? listChannels(projector.state("deliveries")) : [];
  return listHolders(eventLog, channels).catch(() => ({}));
}

function dailyQuota({ outreach }: Config, projector: Projector, clock: Clock): DailyQuota {
  const { dailyLimit: limit, timezone } = outreach;
  const now = () => quotaNow({ projector, clock, timezone });
  return {
    limit,
    used: () => usedAt(projector.state("quota"), now()),
    resetsAt: () => resetsAt(projector.state("quota"), limit, now()),
  };
}
