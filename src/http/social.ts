import type { Static } from "@sinclair/typebox";
import type { EventStore, IdempotencyKey } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { isoTime, type Clock } from "../platform/clock.ts";
import type { RunState } from "../../projections/run.ts";
import type { EventMetadata } from "../log/event-log.ts";
import { endedTransiently } from "../outreach/transient-end.ts";
import type { RunReport } from "../outreach/execute-run.ts";
import type { Runner, Triggered } from "../outreach/runner.ts";
import type { Projector } from "../projector/projector.ts";
import { json, type Answer } from "./answer.ts";
import type { Allowance } from "./limit-headers.ts";
import { problems, startedOrNothing, type Problem } from "./problem.ts";
import type { runBody } from "./schemas.ts";

/** The longest a caller may wait for a run (spec: N ≤ 300). */
const WAIT_MAX_S = 300;

export interface SocialDeps {
  /** Undefined: X is not configured. */
  readonly runner: Runner | undefined;
  /** False: no message template, so no run can start. */
  readonly hasTemplate: boolean;
  readonly projector: Projector;
  readonly store: EventStore<Event>;
  readonly limits: { readonly limit: number; readonly resetsAt: () => number; readonly used: () => number };
  readonly clock: Clock;
}

/** The outreach agent. Each function is one endpoint; docs/http-api.md has its answers. */
export function createSocial(deps: SocialDeps) {
  const { projector } = deps;

  const authorized = (): Runner => {
    if (deps.runner === undefined || !projector.state("account").authorized) throw problems.notAuthorized();
    return deps.runner;
  };

  const quota = () => {
    const used = deps.limits.used();
    return { limit: deps.limits.limit, used, remaining: Math.max(0, deps.limits.limit - used) };
  };

  const secondsToReset = () => Math.max(1, Math.ceil((deps.limits.resetsAt() - deps.clock()) / 1000));

  return {
    health(): Answer {
      const { current } = projector.state("run");
      const account = projector.state("account");
      // Somebody was linked, and the grant died: no run can start until a person authorizes again.
      const degraded = account.user !== null && !account.authorized;
      return json(200, {
        status: degraded ? "degraded" : "ok",
        running: current !== null,
        run: current === null ? null : { id: current.run_id, ...shown(current, deps.clock()) },
        authorized: account.authorized,
        quota: { ...quota(), resets_at: isoTime(deps.limits.resetsAt()) },
      });
    },

    async run(
      body: Static<typeof runBody>,
      prefer: string | null,
      metadata: EventMetadata,
      key: IdempotencyKey | undefined,
    ): Promise<Answer> {
      const runner = authorized();
      if (!deps.hasTemplate) throw problems.noTemplate();
      const dryRun = body.dry_run ?? false;
      const request = { dryRun, metadata, ...(key === undefined ? {} : { key }) };
      const triggered = await startedOrNothing(runner.trigger(request));
      const started = startedOrThrow(triggered, () => problems.dailyLimit(deps.limits.limit, secondsToReset()));
      const waitMs = dryRun ? undefined : waitOf(prefer);
      const report = waitMs === 0 ? undefined : await withinMs(started.done, waitMs);
      // A dry run always waits: without a report it died of a fault, which is logged.
      if (report === undefined && dryRun) throw problems.internal();
      if (report === undefined) return json(202, { run_id: started.run_id, dry_run: dryRun, status: "started" });
      return json(200, finished(report, dryRun));
    },

    /** Whether the run that an answer tells of ended for a reason that passes: the same key may start another one. */
    async isOver({ body }: Answer): Promise<boolean> {
      const { run_id } = JSON.parse(body) as { run_id: string };
      return endedTransiently(deps.store, run_id);
    },

    stats(): Answer {
      const { sent, skipped, failed } = projector.state("stats");
      return json(200, {
        sent,
        skipped,
        failed,
        as_of: { position: projector.position, time: projector.time ?? null },
      });
    },

    /** The quota, to be told beside each answer. */
    allowance(): Allowance {
      const { limit, remaining } = quota();
      return { limit, windowSeconds: 86_400, left: remaining, seconds: secondsToReset() };
    },
  };
}

/** `waiting`: until when and why; null while the run works. */
function shown({ dry_run, started_at, sent, skipped, failed, in_doubt, waiting }: RunState, now: number) {
  const isWaiting = waiting !== null && Date.parse(waiting.until) > now;
  return { dry_run, started_at, sent, skipped, failed, in_doubt, waiting: isWaiting ? waiting : null };
}

function startedOrThrow(triggered: Triggered, limitReached: () => Problem): Extract<Triggered, { kind: "started" }> {
  switch (triggered.kind) {
    case "started":
      return triggered;
    case "running":
      throw problems.running(triggered.run_id);
    case "not_authorized":
      throw problems.notAuthorized();
    case "limit_reached":
      throw limitReached();
  }
}

/** `Prefer: wait=N` in ms (RFC 7240); 0 without one. */
function waitOf(prefer: string | null): number {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer ?? "")?.[1];
  return Math.min(Number(seconds ?? 0), WAIT_MAX_S) * 1000;
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

function finished({ preview, ...report }: RunReport, dryRun: boolean) {
  const { run_id, ...rest } = report;
  if (preview === undefined) return { run_id, dry_run: dryRun, status: "finished", ...rest };
  const { would_send, would_skip, variants, estimate } = preview;
  return { run_id, dry_run: dryRun, status: "finished", ...rest, estimate, variants, would_send, would_skip };
}
