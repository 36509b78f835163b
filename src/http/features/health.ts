import { Type } from "@sinclair/typebox";
import { CHANNELS } from "../../../events/channel.ts";
import { RunPaused } from "../../../events/outreach.ts";
import { pendingOf, type ChannelState } from "../../../projections/deliveries.ts";
import type { RunState } from "../../../projections/run.ts";
import type { Circuit } from "../../delivery/rate-limiter.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import type { Instance } from "../../log/instances.ts";
import { isoTime, type Clock } from "../../platform/clock.ts";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import type { Operation } from "../server/endpoint.ts";
import { RETRY_LATER } from "../server/problem.ts";
import { quotaLeft, type DailyQuota } from "./run.ts";
import type { RequestLog } from "../server/request-log.ts";
import { count, id, oneOf, orNull, perChannel, text, time } from "./schema.ts";

export interface OutreachHealthDeps {
  readonly projector: Projector;
  /** Since when the log is out of reach, in ms since 1970; undefined: it is in reach. */
  readonly awaySince: () => number | undefined;
  readonly quota: DailyQuota;
  readonly clock: Clock;
}

const run = Type.Object({
  id,
  dry_run: Type.Boolean(),
  started_at: time,
  sent: count,
  skipped: count,
  failed: count,
  in_doubt: count,
  waiting: orNull(Type.Object({ reason: RunPaused.data.properties.reason, until: time })),
  stop_requested_at: orNull(time),
});

const outreachState = Type.Object({
  status: oneOf("ok", "degraded"),
  running: Type.Boolean(),
  run: orNull(run),
  authorized: Type.Boolean(),
  quota: Type.Object({ limit: count, used: count, remaining: count, resets_at: time }),
});

export const outreachHealth: Operation<OutreachHealthDeps> = {
  id: "getSocialHealth",
  tag: "outreach",
  summary: "Health, the run in progress and today's quota.",
  description:
    "Shows whether a run is in progress, whether an X account is authorized, and what is left of the day's messages.",
  answers: { 200: { says: "How it is.", schema: outreachState } },
  problems: [],
  handle({ projector, quota, clock, awaySince }) {
    const { current } = projector.state("run");
    const { user, authorized } = projector.state("account");
    // Somebody was linked, and the grant died: no run can start until a person authorizes again.
    const degraded = (user !== null && !authorized) || awaySince() !== undefined;
    return json(200, {
      status: degraded ? "degraded" : "ok",
      running: current !== null,
      run: current === null ? null : shown(current, clock()),
      authorized,
      quota: { ...quotaLeft(quota), resets_at: isoTime(quota.resetsAt()) },
    });
  },
};

/** `waiting`: until when and why; null while the run works. */
function shown(run: RunState, now: number) {
  const { run_id, dry_run, started_at, sent, skipped, failed, in_doubt, waiting, stop_requested_at } = run;
  const isWaiting = waiting !== null && Date.parse(waiting.until) > now;
  const counts = { sent, skipped, failed, in_doubt };
  return { id: run_id, dry_run, started_at, ...counts, waiting: isWaiting ? waiting : null, stop_requested_at };
}

export interface ServiceHealthDeps {
  readonly projector: Projector;
  readonly delivery: Delivery;
  readonly requestLog: RequestLog;
  readonly version: string;
  /** Those that serve this log now, this one first. */
  readonly instances: () => readonly Instance[];
  /** What one of them does for all, with the id of that one; nothing while the log is out of reach. */
  readonly roles: () => Promise<Readonly<Record<string, string>>>;
}

const serviceState = Type.Object({
  status: oneOf("ok", "degraded"),
  version: text("0.2.0"),
  log: Type.Object({ position: count }),
  instances: Type.Array(Type.Object({ id, version: text("0.2.0"), started_at: time, configuration: text("9b2d6f0a") })),
  roles: Type.Object(
    {},
    { additionalProperties: id, examples: [{ "dispatcher-chat": "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11" }] },
  ),
  channels: perChannel(
    Type.Object({
      configured: Type.Boolean(),
      pending: count,
      circuit: orNull(oneOf("closed", "open", "half_open")),
      suspended: orNull(Type.Object({ since: time, detail: text("channel_is_archived") })),
    }),
  ),
});

export const serviceHealth: Operation<ServiceHealthDeps> = {
  id: "getHealth",
  tag: "tracking",
  summary: "Health of the log and of each channel.",
  description:
    "Shows whether events can be recorded, and of each channel what waits and whether it is refused. `degraded`: the log " +
    "takes nothing (503), or a channel is suspended or its circuit is not closed (200: events are recorded, and wait). " +
    "`roles`: what one instance does for all, with the id of that one; one of a dead instance is taken over within a minute.",
  answers: {
    200: { says: "The log takes what comes.", schema: serviceState },
    503: { says: "It does not.", schema: serviceState },
  },
  problems: [],
  async handle({ projector, delivery, requestLog, version, instances, roles }) {
    const deliveries = projector.state("deliveries");
    const channels = CHANNELS.map((name) => ({
      name,
      configured: delivery.configured.includes(name),
      pending: pendingOf(deliveries[name]),
      circuit: delivery.circuit(name) ?? null,
      suspended: suspendedOf(deliveries[name]),
    }));
    const isWritable = await requestLog.isWritable();
    const status = isWritable && channels.every(isWell) ? "ok" : "degraded";
    const log = { position: projector.position };
    const live = instances().map(({ id, version: its, started_at, configuration }) => {
      return { id, version: its, started_at, configuration };
    });
    const byName = Object.fromEntries(channels.map(({ name, ...channel }) => [name, channel]));
    const body = { status, version, log, instances: live, roles: await roles(), channels: byName };
    return json(isWritable ? 200 : 503, body, isWritable ? undefined : RETRY_LATER);
  },
};

/** A half-open circuit has yet to show that its network is back. */
function isWell({
  circuit,
  suspended,
}: {
  readonly circuit: Circuit | null;
  readonly suspended: object | null;
}): boolean {
  return suspended === null && (circuit === null || circuit === "closed");
}

/** Since when and why the network refuses the channel; null while it does not. */
function suspendedOf({ suspended }: ChannelState) {
  return suspended === null ? null : { since: suspended.since, detail: suspended.detail };
}
