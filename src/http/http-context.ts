import type { Visits } from "./access/last-visit.ts";
import { Elysia } from "elysia";
import type { Account, UsedStates } from "../account/link-and-unlink-account.ts";
import type { Authorization } from "../account/oauth.ts";
import type { Console } from "../console/render-console.ts";
import type { Delivery } from "../delivery/wait-for-outcome.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import type { LogVerifier } from "../log/verify-log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Runner } from "../outreach/start-run.ts";
import type { PlaceVisitor } from "../privacy/hash-visitor-for-counting.ts";
import type { PastStates } from "../projector/past-states.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { AdmissionContext } from "./access/check-host-load-and-caller.ts";
import type { ClientAddress } from "./access/client-address.ts";
import type { EncryptedCookie } from "./access/encrypted-cookie.ts";
import type { DailyQuota } from "./access/rate-limit.ts";
import type { RequestContext } from "./server/endpoint.ts";
import type { Notices } from "./server/form-routes.ts";
import type { Idempotency } from "./server/idempotency.ts";
import type { EventIntake } from "./server/event-intake.ts";
import type { StreamPace } from "./streams/event-stream.ts";
import type { WriteContext } from "../privacy/log-context-types.ts";

/**
 * The context of the HTTP server: an open log, and what all requests share. Features keep it, and use it only when a
 * request arrives.
 */
export interface HttpContext extends WriteContext, AdmissionContext {
  readonly clientAddress: ClientAddress;
  readonly metrics: Metrics;
  /** The service's traces. Undefined if no collector is configured. */
  readonly tracing: Tracing | undefined;
  readonly idempotency: Idempotency;
  readonly version: string;
  readonly eventIntake: EventIntake;
  readonly delivery: Delivery;
  readonly placeVisitor: PlaceVisitor;
  /** Runs outreach. Undefined if X is not configured. */
  readonly runner: Runner | undefined;
  /** The linked X account. Undefined if X is not configured. */
  readonly account: AccountParts | undefined;
  readonly quota: DailyQuota;
  readonly verifier: LogVerifier;
  readonly console: Console;
  /** Projection states as they were at earlier moments. */
  readonly past: PastStates;
  readonly notices: Notices;
  readonly visits: Visits;
  readonly streamPace: StreamPace;
  /** The instances that serve this log now, this one first. */
  readonly instances: () => readonly Instance[];
  /**
   * Each role that only one instance may hold, with the id of the instance that holds it; empty while the log is
   * unreachable.
   */
  readonly roles: () => Promise<Readonly<Record<string, string>>>;
  /** When the log became unreachable, in ms since 1970; undefined while it is reachable. */
  readonly awaySince: () => number | undefined;
}

/** The X account of outreach, and what is needed to link it. */
export interface AccountParts extends Account {
  readonly cookie: EncryptedCookie<Authorization>;
  readonly states: UsedStates;
}

/**
 * Placeholder for the request in progress, so that handlers know its type. app.ts sets the real one before any handler
 * runs.
 */
export const NO_CALL = { call: undefined as unknown as RequestContext };

/**
 * Creates the Elysia plugin for the endpoints of one feature. Elysia parses no bodies: app.ts reads them after it has
 * admitted the caller.
 */
export function feature<const Prefix extends string>(name: string, prefix: Prefix) {
  return new Elysia({ name, prefix }).guard({ parse: ["none"] }).decorate(NO_CALL);
}
