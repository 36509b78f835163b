import type { Visits } from "./access/last-visit.ts";
import { Elysia } from "elysia";
import type { LinkDeps, UsedStates } from "../account/link.ts";
import type { Authorization } from "../account/oauth.ts";
import type { Config } from "../config/config.ts";
import type { Console } from "../console/console.ts";
import type { Delivery } from "../delivery/settlement.ts";
import type { HandleDeps } from "../log/decide-and-append.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import type { SignedHead, proveEvent } from "../log/signed-heads.ts";
import type { LogVerifier } from "../log/verifier.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Runner } from "../outreach/start-run.ts";
import type { FindLinkKeys } from "../recipients/record-consent.ts";
import type { HashesOf } from "../recipients/suppress.ts";
import type { EncryptedLog } from "../privacy/encrypted-log.ts";
import type { PlaceVisitor } from "../privacy/visitor-sketch.ts";
import type { PastStates } from "../projector/past-states.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { AdmissionDeps } from "./access/admission.ts";
import type { ClientAddress } from "./access/client-address.ts";
import type { EncryptedCookie } from "./access/encrypted-cookie.ts";
import type { DailyQuota } from "./access/rate-limit.ts";
import type { RequestContext } from "./server/endpoint.ts";
import type { Notices } from "./server/form-routes.ts";
import type { Idempotency } from "./server/idempotency.ts";
import type { EventIntake } from "./server/event-intake.ts";
import type { StreamPace } from "./streams/event-stream.ts";
import type { PartDeps } from "../log/event-log.ts";

/**
 * The server's dependencies. Each feature closes over those that it needs, and touches them only when a request comes.
 */
export interface AppDeps extends AdmissionDeps, HandleDeps, Pick<PartDeps, "clock" | "logger"> {
  readonly clientAddress: ClientAddress;
  readonly metrics: Pick<Metrics, "text" | "countAnswer">;
  /** Undefined if no collector takes traces. */
  readonly tracing: Pick<Tracing, "request"> | undefined;
  readonly config: Pick<Config, "http" | "auditReads" | "links" | "bots" | "outreach" | "outreachWith">;
  readonly idempotency: Idempotency;
  readonly version: string;
  readonly encryptedLog: EncryptedLog;
  readonly eventIntake: EventIntake;
  readonly delivery: Delivery;
  readonly placeVisitor: PlaceVisitor;
  /** Undefined if X is not configured. */
  readonly runner: Runner | undefined;
  /** Undefined if X is not configured. */
  readonly account: AccountParts | undefined;
  readonly quota: DailyQuota;
  readonly hashesOf: HashesOf;
  readonly findLinkKeys: FindLinkKeys;
  readonly verifier: LogVerifier;
  readonly signHead: () => Promise<SignedHead>;
  readonly proveEvent: (position: number) => ReturnType<typeof proveEvent>;
  readonly console: Console;
  /** The states as of earlier moments. */
  readonly past: PastStates;
  readonly notices: Notices;
  readonly visits: Visits;
  readonly streamPace: StreamPace;
  /** The instances that serve this log now, this one first. */
  readonly instances: () => readonly Instance[];
  /** The roles that one instance holds for all, each with that instance's id; empty while the log is unreachable. */
  readonly roles: () => Promise<Readonly<Record<string, string>>>;
  /** When the log became unreachable, in ms since 1970; undefined while it is reachable. */
  readonly awaySince: () => number | undefined;
  /** Aborts when the service begins to stop. */
  readonly stopping: AbortSignal;
}

/** How the outreach agent's account is linked. */
export interface AccountParts extends LinkDeps {
  readonly cookie: EncryptedCookie<Authorization>;
  readonly states: UsedStates;
}

/** Placeholder; app.ts sets `call` before any handler runs. */
export const NO_CALL = { call: undefined as unknown as RequestContext };

/** Creates the plugin of one feature's endpoints. Elysia parses none of their bodies: app.ts does, after admission. */
export function feature<const Prefix extends string>(name: string, prefix: Prefix) {
  return new Elysia({ name, prefix }).guard({ parse: ["none"] }).decorate(NO_CALL);
}
