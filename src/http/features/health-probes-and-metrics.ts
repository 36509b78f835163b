import { Type } from "@sinclair/typebox";
import { CHANNELS } from "../../../events/channel-and-lane-names.ts";
import { RunPaused } from "../../../events/outreach.ts";
import { channelsOf, pendingOf } from "../../../projections/deliveries.ts";
import type { RunState } from "../../../projections/current-run.ts";
import { classifyError } from "../../log/classify-store-error.ts";
import { fingerprintLog } from "../../log/log-fingerprint.ts";
import { METRICS_TYPE } from "../../metrics/metrics.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { quotaLeft } from "../access/rate-limit.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { whole, withHeaders } from "../server/http-response.ts";
import { route, reply, textReply } from "../server/endpoint.ts";
import { RETRY_LATER } from "../server/problem.ts";
import { count, id, named, oneOf, orNull, text, time } from "../../platform/common-schemas.ts";

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

const outreachState = named(
  "OutreachState",
  Type.Object({
    status: oneOf("ok", "degraded"),
    running: Type.Boolean(),
    run: orNull(run),
    authorized: Type.Boolean(),
    quota: Type.Object({ limit: count, used: count, remaining: count, resets_at: time }),
  }),
);

/** Schema of the projections that are being folded. Present in the answer only while there are any. */
const folding = Type.Optional(
  Type.Object(
    {},
    {
      additionalProperties: Type.Number({ minimum: 0, maximum: 1 }),
      description:
        "Projections that are folded from the log, each with the share that is done. Answers that need one are 503 `projection-folding`.",
      examples: [{ visits: 0.42 }],
    },
  ),
);

const channel = named(
  "ChannelState",
  Type.Object({
    configured: Type.Boolean(),
    pending: count,
    circuit: orNull(oneOf("closed", "open", "half_open")),
    suspended: orNull(Type.Object({ since: time, detail: text("channel_is_archived") })),
  }),
);

const serviceState = named(
  "ServiceState",
  Type.Object({
    status: oneOf("ok", "degraded"),
    version: text("0.2.0"),
    log: Type.Object({ position: count }),
    instances: Type.Array(
      Type.Object({ id, version: text("0.2.0"), started_at: time, configuration: text("9b2d6f0a") }),
    ),
    roles: Type.Object(
      {},
      { additionalProperties: id, examples: [{ "dispatcher-chat": "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11" }] },
    ),
    channels: Type.Optional(
      Type.Object(Object.fromEntries(CHANNELS.map((name) => [name, channel])), { additionalProperties: channel }),
    ),
    folding,
  }),
);

const readiness = named(
  "Readiness",
  Type.Object({
    status: oneOf("ok", "unavailable"),
    checks: Type.Object({
      running: Type.Boolean(),
      log_writable: Type.Boolean(),
      projections_caught_up: Type.Boolean(),
    }),
    log: Type.String({
      pattern: "^[0-9a-f]{32}$",
      description: "A fingerprint of the log; commands recognise the service of their own log by it.",
      examples: ["9f2c4e0b7d1a4c5e8b3f6a7d2e1c0b9a"],
    }),
    folding,
  }),
);

export function healthEndpoints(context: HttpContext) {
  return feature("health", "")
    .get(
      "/social/health",
      () => outreachHealth(context),
      route("getSocialHealth", "outreach", "open", {
        response: { 200: reply("The state.", outreachState) },
        exemptFromLoadShedding: true,
        summary: "Health, the run in progress and today's quota.",
        description:
          "Shows whether a run is in progress, whether an X account is authorized, and what is left of the day's messages.",
      }),
    )
    .get(
      "/api/health",
      async ({ status }) => {
        const isWritable = await context.eventIntake.isWritable();
        const body = await serviceHealth(context, isWritable);
        return isWritable ? status(200, body) : withHeaders(status(503, body), RETRY_LATER);
      },
      route("getHealth", "tracking", "open", {
        response: {
          200: reply("The log accepts appends.", serviceState),
          503: reply("The log refuses appends.", serviceState),
        },
        exemptFromLoadShedding: true,
        summary: "Health of the log and of each channel.",
        description:
          "Shows whether events can be recorded, and for each channel what is pending and whether it is refused. `degraded`: the " +
          "log refuses appends (503), or a channel is suspended, its circuit is not closed, or projections are folded after a start (200: events are recorded, and " +
          "wait). `channels` is absent while the deliveries are folded. `roles`: the work that one instance does for all, each with that instance's id. Another instance takes over from a dead one within a minute.",
      }),
    )
    .get(
      "/livez",
      () => ({ status: "ok" as const }),
      route("getLiveness", "service", "open", {
        response: { 200: reply("The process answers.", Type.Object({ status: oneOf("ok") })) },
        exemptFromLoadShedding: true,
        anyHost: true,
        summary: "Whether the process answers.",
        description:
          "Liveness probe: a supervisor restarts the service when it fails. Does not check the log or the networks.",
      }),
    )
    .get(
      "/readyz",
      async ({ status }) => {
        const checks = await checkReadiness(context);
        const isReady = Object.values(checks).every((holds) => holds);
        const shown = { checks, log: fingerprintLog(context.eventLog.store), ...describeFolding(context) };
        if (isReady) return status(200, { status: "ok", ...shown });
        return withHeaders(status(503, { status: "unavailable", ...shown }), RETRY_LATER);
      },
      route("getReadiness", "service", "open", {
        response: { 200: reply("Ready.", readiness), 503: reply("Not ready.", readiness) },
        exemptFromLoadShedding: true,
        anyHost: true,
        summary: "Whether this instance is ready for requests.",
        description:
          "Readiness probe for a load balancer: the service is not stopping, the log accepts appends, and answers are up to date. " +
          "An instance is ready for clicks while projections are still folded after a start; `folding` says how far they are. " +
          "A suspended channel does not count, since clicks are recorded all the same; `/api/health` shows it.",
      }),
    )
    .get(
      "/metrics",
      async () => {
        const headers = { "content-type": METRICS_TYPE, "cache-control": "no-store" };
        return whole({ status: 200, headers, body: await context.metrics.text() });
      },
      route("getMetrics", "service", ["session", "read"], {
        response: { 200: textReply("The figures.", { mediaType: "text/plain" }) },
        personalRead: false,
        exemptFromLoadShedding: true,
        summary: "Figures for Prometheus.",
        description:
          "In Prometheus's text format, without personal data. Needs a token or a console session once a token is " +
          "configured. Answered under any load.",
      }),
    );
}

function outreachHealth({ projector, quota, clock, awaySince }: HttpContext) {
  const { current } = projector.state("run");
  const { user, authorized } = projector.state("account");
  // Without a valid grant for the linked account, no run can start until the operator authorizes it again.
  const degraded = (user !== null && !authorized) || awaySince() !== undefined;
  return {
    status: degraded ? ("degraded" as const) : ("ok" as const),
    running: current !== null,
    run: current === null ? null : shown(current, clock()),
    authorized,
    quota: { ...quotaLeft(quota), resets_at: isoTime(quota.resetsAt()) },
  };
}

/** Converts the state of a run to its JSON. `waiting`: why and until when the run pauses; null while it works. */
function shown(run: RunState, now: number) {
  const { run_id, dry_run, started_at, sent, skipped, failed, in_doubt, waiting, stop_requested_at } = run;
  const isWaiting = waiting !== null && Date.parse(waiting.until) > now;
  const counts = { sent, skipped, failed, in_doubt };
  return { id: run_id, dry_run, started_at, ...counts, waiting: isWaiting ? waiting : null, stop_requested_at };
}

/**
 * Returns the projections that are being folded from the log, each with the share that is done; an empty object if
 * there are none.
 */
function describeFolding({ projector }: HttpContext) {
  const shares = projector.folding();
  if (shares.size === 0) return {};
  return { folding: Object.fromEntries([...shares].map(([name, share]) => [name, Math.floor(share * 1000) / 1000])) };
}

async function serviceHealth(context: HttpContext, isWritable: boolean) {
  const { projector, version, instances, roles } = context;
  const channels = projector.isFolded("deliveries") ? describeChannels(context) : undefined;
  // While the circuit is half-open, it is not known yet if the network works again.
  const isWell =
    projector.folding().size === 0 &&
    channels?.every(({ circuit, suspended }) => suspended === null && (circuit === null || circuit === "closed"));
  const live = instances().map(({ id: own, version: its, started_at, configuration }) => {
    return { id: own, version: its, started_at, configuration };
  });
  return {
    status: isWritable && isWell === true ? ("ok" as const) : ("degraded" as const),
    version,
    log: { position: projector.position },
    instances: live,
    roles: await roles(),
    ...(channels && { channels: Object.fromEntries(channels.map(({ name, ...channel }) => [name, channel])) }),
    ...describeFolding(context),
  };
}

function describeChannels({ projector, delivery }: HttpContext) {
  return channelsOf(projector.state("deliveries")).map(([name, state]) => {
    const { suspended } = state;
    return {
      name,
      configured: delivery.configured.includes(name),
      pending: pendingOf(state),
      circuit: delivery.circuit(name) ?? null,
      suspended: suspended && { since: suspended.since, detail: suspended.detail },
    };
  });
}

/**
 * Maximum number of events by which the projections of a ready service may lag behind the log: about one second of the
 * fastest intake.
 */
export const BEHIND_MAX = 10_000;

async function checkReadiness({ stopping, eventIntake, eventLog, projector }: HttpContext) {
  const isCaughtUp = async () => (await eventLog.store.head()).position - projector.position <= BEHIND_MAX;
  const [log_writable, projections_caught_up] = await Promise.all([
    holds(eventIntake.isWritable()),
    holds(isCaughtUp()),
  ]);
  return { running: !stopping.aborted, log_writable, projections_caught_up };
}

/** Returns the result of a readiness check, or false if the log is unreachable. */
async function holds(check: Promise<boolean>): Promise<boolean> {
  try {
    return await check;
  } catch (fault) {
    if (classifyError(fault) === undefined) throw fault;
    return false;
  }
}
