import { Type } from "@sinclair/typebox";
import { runEnd, skipReason, usage } from "../../../events/outreach.ts";
import { dryRunPage } from "../../console/dry-run.tsx";
import type { EventLog } from "../../log/event-log.ts";
import type { RunReport } from "../../outreach/execute-run.ts";
import { endedTransiently } from "../../outreach/run-end.ts";
import type { Runner, Triggered } from "../../outreach/runner.ts";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { formOf } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import { problems, startedOrNothing, appendedOrNothing } from "../server/problem.ts";
import { closed, count, id, text, time } from "./schema.ts";
import { requestStop } from "../../outreach/stop-run.ts";
import { sleep, type Clock } from "../../platform/clock.ts";
import type { Allowance } from "../access/rate-limit.ts";

/** The longest a caller may wait for a run (spec: N ≤ 300). */
const WAIT_MAX_S = 300;

export interface RunDeps extends QuotaDeps {
  /** Undefined: X is not configured. */
  readonly runner: Runner | undefined;
  /** False: no message template, so no run can start. */
  readonly hasTemplate: boolean;
  readonly projector: Projector;
  readonly eventLog: EventLog;
}

const runBody = jsonBody(
  Type.Object(
    { dry_run: Type.Optional(Type.Boolean({ description: "Say what a run would do, and send nothing." })) },
    closed,
  ),
);

const started = Type.Object({ run_id: id, dry_run: Type.Boolean(), status: Type.Literal("started") });

const recipient = Type.Object({ id: Type.Optional(text("2244994945")), username: Type.Optional(text("ada_builds")) });

const preview = Type.Object({
  estimate: usage,
  variants: Type.Array(Type.Object({ variant: text("A"), text: text("Hi Ada") })),
  would_send: Type.Array(Type.Object({ recipient, text: text("Hi Ada"), variant: text("A") })),
  would_skip: Type.Array(Type.Object({ recipient, reason: skipReason })),
});

const finished = Type.Object({
  run_id: id,
  dry_run: Type.Boolean(),
  status: Type.Literal("finished"),
  reason: runEnd,
  sent: count,
  skipped: count,
  failed: count,
  in_doubt: count,
  started_at: time,
  finished_at: time,
  usage,
  ...Type.Partial(preview).properties,
});

const QUOTA_HEADERS = ["ratelimit", "ratelimit-policy"];

export const startRun = post({
  id: "startRun",
  tag: "outreach",
  summary: "Starts a run of the outreach agent.",
  description:
    "Sends direct messages to the recipients who are due, within the day's quota; one run at a time. A dry run sends nothing, and lists the recipients a run would write to.",
  takes: ["Idempotency-Key", "Prefer"],
  body: runBody,
  answers: {
    200: { says: "The run has ended.", schema: finished, headers: QUOTA_HEADERS },
    202: { says: "The run has started.", schema: started, headers: QUOTA_HEADERS },
  },
  problems: ["notAuthorized", "running", "dailyLimit", "noTemplate", "clockSkewed"],
  isSlow: true,
  limit: { name: "dm-day", allowance: quotaAllowance },
  isExclusive: true,
  isOver({ eventLog }: RunDeps, { body }) {
    const { run_id } = JSON.parse(body) as { run_id: string };
    return endedTransiently(eventLog.store, run_id);
  },
  async handle(deps: RunDeps, { request, body, metadata, key }) {
    const runner = authorizedRunner(deps);
    if (!deps.hasTemplate) throw problems.noTemplate();
    const dryRun = body.dry_run ?? false;
    const triggered = await startedOrNothing(
      runner.trigger({ dryRun, metadata, ...(key === undefined ? {} : { key }) }),
    );
    const { run_id, done } = startedOrThrow(triggered, deps);
    const waitS = dryRun ? undefined : waitOf(request.headers.get("prefer"));
    const headers = waitS === undefined ? {} : { "preference-applied": `wait=${waitS}` };
    const waitMs = dryRun ? undefined : (waitS ?? 0) * 1000;
    const report = waitMs === 0 ? undefined : await withinMs(done, waitMs);
    if (report !== undefined) return json(200, shown(report, dryRun), headers);
    // A dry run always waits: without a report it died of a fault, which is logged.
    if (dryRun) throw problems.internal();
    return json(202, { run_id, dry_run: dryRun, status: "started" }, headers);
  },
});

export const dryRunByForm = formOf(startRun, {
  id: "dryRunByForm",
  body: () => ({ dry_run: true }),
  page: dryRunPage,
});

/** Does not wait for the run's end: the overview shows how it goes. */
export const startRunByForm = formOf(startRun, { body: () => ({}), says: () => "The run has started." });

function authorizedRunner({ runner, projector }: RunDeps): Runner {
  if (runner === undefined || !projector.state("account").authorized) throw problems.notAuthorized();
  return runner;
}

function startedOrThrow(triggered: Triggered, deps: QuotaDeps): Extract<Triggered, { kind: "started" }> {
  switch (triggered.kind) {
    case "started":
      return triggered;
    case "running":
      throw problems.running(triggered.run_id);
    case "not_authorized":
      throw problems.notAuthorized();
    case "clock_skewed":
      throw problems.clockSkewed(triggered.skewMs);
    case "limit_reached":
      throw problems.dailyLimit(deps.quota.limit, quotaAllowance(deps).seconds);
  }
}

/** `Prefer: wait=N` in seconds (RFC 7240), as far as it is granted; undefined without one. */
function waitOf(prefer: string | null): number | undefined {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer ?? "")?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), WAIT_MAX_S);
}

/** The report, or undefined when it is not there in time; `ms` undefined waits for it. */
async function withinMs(done: Promise<RunReport | undefined>, ms: number | undefined): Promise<RunReport | undefined> {
  if (ms === undefined) return done;
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), ms);
  try {
    return await Promise.race([done, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A report as callers see it: what a dry run found stands beside the rest. */
function shown({ run_id, preview: found, ...report }: RunReport, dryRun: boolean) {
  const ended = { run_id, dry_run: dryRun, status: "finished", ...report };
  if (found === undefined) return ended;
  const { estimate, variants, would_send, would_skip } = found;
  return { ...ended, estimate, variants, would_send, would_skip };
}

export interface StopRunDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

const stopBody = Type.Object(
  {
    run_id: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9-]{1,100}$",
        description: "Absent: the run in progress.",
        examples: ["01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"],
      }),
    ),
  },
  closed,
);

const stopping = Type.Object({ run_id: id, status: Type.Literal("stopping") });

export const stopRun = post({
  id: "stopRun",
  tag: "outreach",
  summary: "Stops the run in progress.",
  description:
    "The run sends nothing more, settles what is in flight and ends as `stopped`, on whatever instance it is made; a wait of its ends at once. A message whose last look at the log came before the request may still go out. A dry run can be stopped too; a repeat changes nothing.",
  body: jsonBody(stopBody),
  answers: { 202: { says: "The run is asked to stop.", schema: stopping } },
  problems: ["noRun"],
  async handle(deps: StopRunDeps, { body: { run_id: runId }, metadata }) {
    const asked = await appendedOrNothing(requestStop({ ...deps, sleep, random: Math.random }, runId, metadata));
    if (asked.kind === "not_in_progress") throw problems.noRun();
    return json(202, { run_id: asked.run_id, status: asked.kind });
  },
});

export const stopRunByForm = formOf(stopRun, {
  body: ({ run_id }) => ({ run_id }),
  says: () => "The run is asked to stop: it sends nothing more.",
});

/** The messages of one day. */
export interface DailyQuota {
  readonly limit: number;
  readonly used: () => number;
  /** Milliseconds since the epoch. */
  readonly resetsAt: () => number;
}

export interface QuotaDeps {
  readonly quota: DailyQuota;
  readonly clock: Clock;
}

export function quotaLeft({ limit, used: usedNow }: DailyQuota) {
  const used = usedNow();
  return { limit, used, remaining: Math.max(0, limit - used) };
}

/** The quota as `RateLimit` headers show it. */
export function quotaAllowance({ quota, clock }: QuotaDeps): Allowance {
  const { limit, remaining } = quotaLeft(quota);
  const seconds = Math.max(1, Math.ceil((quota.resetsAt() - clock()) / 1000));
  return { limit, windowSeconds: 86_400, left: remaining, seconds };
}
