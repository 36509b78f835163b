import { Type } from "@sinclair/typebox";
import { basis, recipientSource, runEnd, skipReason, usage } from "../../../events/outreach.ts";
import { DAILY_LIMIT_MAX } from "../../config/schema.ts";
import { dryRunPage } from "../../console/pages/dry-run.tsx";
import type { RunReport } from "../../outreach/execute-run.ts";
import { findTransientEnd } from "../../outreach/run-end.ts";
import type { RunSelection } from "../../outreach/run-limits.ts";
import type { Triggered } from "../../outreach/start-run.ts";
import { recipientAnswer } from "../../recipients/resolve-recipient.ts";
import { isoTime, within } from "../../platform/clock.ts";
import { quotaAllowance } from "../access/rate-limit.ts";
import { feature, type AppDeps } from "../deps.ts";
import { withHeaders } from "../server/answer.ts";
import { objectBody, type Fields } from "../server/body.ts";
import { route, reply, type Form } from "../server/endpoint.ts";
import { leaveOutEmpty } from "../server/form-routes.ts";
import { problems, startedOrNothing } from "../server/problem.ts";
import { count, id, text, time } from "../../platform/common-schemas.ts";
import { EITHER } from "../../platform/counts-and-lists.ts";

/** The longest a caller may wait for a run (spec: N ≤ 300). */
const WAIT_MAX_S = 300;

const selectionMembers = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DAILY_LIMIT_MAX,
      description:
        "Messages to send, within the day's quota. Those in doubt count; those that were certainly not sent do not.",
      examples: [20],
    }),
  ),
  variant: Type.Optional(
    Type.String({ pattern: "^[A-Z]$", description: "Only recipients who get this variant.", examples: ["A"] }),
  ),
  basis: Type.Optional(Type.Union(basis.anyOf, { description: "Only recipients with this ground." })),
  source: Type.Optional(
    Type.Union(recipientSource.anyOf, {
      description: "Only recipients of this source, one of RECIPIENT_SOURCES.",
    }),
  ),
};

const runBody = objectBody({
  dry_run: Type.Optional(Type.Boolean({ description: "Report what a run would do, and send nothing." })),
  ...selectionMembers,
});

const started = Type.Object({ run_id: id, dry_run: Type.Boolean(), status: Type.Literal("started") });

const preview = Type.Object({
  estimate: usage,
  variants: Type.Array(Type.Object({ variant: text("A"), text: text("Hi Ada") })),
  would_send: Type.Array(Type.Object({ recipient: recipientAnswer, text: text("Hi Ada"), variant: text("A") })),
  would_skip: Type.Array(
    Type.Object({
      recipient: recipientAnswer,
      reason: skipReason,
      detail: Type.Optional(
        Type.String({ description: "What is missing.", examples: ["consent_at and consent_source are missing"] }),
      ),
    }),
  ),
});

const finished = Type.Object({
  run_id: id,
  dry_run: Type.Boolean(),
  status: Type.Literal("finished"),
  reason: runEnd,
  until: Type.Optional(Type.String({ format: "date-time", description: "When the sending window opens." })),
  ...selectionMembers,
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

const RUN_FORMS: readonly Form[] = [
  {
    id: "dryRunByForm",
    path: "/console/run/dry",
    body: (fields) => ({ dry_run: true, ...readSelection(fields) }),
    page: dryRunPage,
  },
  // Does not wait for the run's end: the overview shows its progress.
  { path: "/console/run/start", body: readSelection, notice: () => "The run has started." },
];

/** Returns the selection that the form makes. Empty fields are left out. */
function readSelection(fields: Fields) {
  const { limit = "" } = fields;
  return { ...leaveOutEmpty(fields), ...(/^\d+$/.test(limit) && { limit: Number(limit) }) };
}

export function runEndpoints(deps: AppDeps) {
  const { eventLog, projector, idempotency, quota } = deps;
  return feature("runs", "/social").post(
    "/run",
    ({ body, call, status }) => {
      // Only a dry run's answer names recipients, also when its key repeats it.
      if (body.dry_run !== true) call.disclosed = "nothing";
      return idempotency.once(
        call,
        body,
        async (key) => {
          const { runner } = deps;
          if (runner === undefined || !projector.state("account").authorized) throw problems.notAuthorized();
          const { dry_run: dryRun = false, ...selection } = body;
          rejectUnknown(selection, deps);
          const request = { dryRun, selection, metadata: call.metadata, ...(key === undefined ? {} : { key }) };
          // Without the key store, a run would fail at the first event that names a recipient.
          const triggering = deps.encryptedLog.keyring.keys.revision().then(() => runner.trigger(request));
          const { run_id, done } = startedOrThrow(await startedOrNothing(triggering), deps);
          const waitS = dryRun ? undefined : parseWait(call.request.headers.get("prefer"));
          const headers = waitS === undefined ? {} : { "preference-applied": `wait=${waitS}` };
          const report = dryRun ? await done : waitS ? await within(waitS * 1000, done) : undefined;
          if (report !== undefined) return withHeaders(status(200, shown(report, dryRun, selection)), headers);
          // A dry run always waits. Without a report it failed, and the failure is logged.
          if (dryRun) throw problems.internal();
          return withHeaders(status(202, { run_id, dry_run: dryRun, status: "started" as const }), headers);
        },
        {
          isExclusive: true,
          async isOver(kept) {
            const { run_id } = JSON.parse(kept.body) as { run_id: string };
            return (await findTransientEnd(eventLog.store, run_id)) !== undefined;
          },
        },
      );
    },
    route("startRun", "outreach", ["strict", "run"], {
      body: runBody,
      response: {
        200: reply("The run has ended.", finished, QUOTA_HEADERS),
        202: reply("The run has started.", started, QUOTA_HEADERS),
      },
      summary: "Starts a run of the outreach agent.",
      description:
        "Sends direct messages to the recipients who are due, within the day's quota and the sending window; one run at a time. `limit`, `variant`, `basis` and `source` narrow it: it skips none of the recipients that they leave out. A dry run sends nothing, and lists the recipients a run would write to now.",
      requestHeaders: ["Idempotency-Key", "Prefer"],
      personalRead: "preview",
      problems: [
        "notAuthorized",
        "running",
        "dailyLimit",
        "windowClosed",
        "unusableSelection",
        "noTemplate",
        "clockSkewed",
      ],
      isSlow: true,
      limit: { name: "dm-day", allowance: () => quotaAllowance(quota, deps.clock()) },
      form: RUN_FORMS,
    }),
  );
}

/** Throws the problem 503 without a template, and 422 for a variant or a source that is not configured. */
function rejectUnknown({ variant, source }: RunSelection, { config: { outreach } }: AppDeps): void {
  const { template, sources } = outreach;
  if (template === undefined) throw problems.noTemplate();
  const labels = template.variants.map(({ label }) => label);
  if (variant !== undefined && !labels.includes(variant)) {
    throw problems.unusableSelection(
      "/variant",
      `The template has no variant ${variant}. Choose ${EITHER.format(labels)}.`,
    );
  }
  if (source !== undefined && !sources.includes(source)) {
    throw problems.unusableSelection("/source", `${source} is not in RECIPIENT_SOURCES (${sources.join(", ")}).`);
  }
}

function startedOrThrow(triggered: Triggered, { quota, clock }: AppDeps): Extract<Triggered, { kind: "started" }> {
  switch (triggered.kind) {
    case "started":
      return triggered;
    case "running":
      throw problems.running(triggered.run_id);
    case "not_authorized":
      throw problems.notAuthorized();
    case "clock_skewed":
      throw problems.clockSkewed(triggered.skewMs);
    case "window_closed": {
      const { opensAt } = triggered;
      throw problems.windowClosed(isoTime(opensAt), Math.max(1, Math.ceil((opensAt - clock()) / 1000)));
    }
    case "daily_limit_reached":
      throw problems.dailyLimit(quota.limit, quotaAllowance(quota, clock()).seconds);
  }
}

/** Returns the seconds of `Prefer: wait=N` (RFC 7240), limited to {@link WAIT_MAX_S}; undefined without one. */
function parseWait(prefer: string | null): number | undefined {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer ?? "")?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), WAIT_MAX_S);
}

/** Converts a report to the answer: the findings of a dry run become members like all others. */
function shown({ run_id, preview: found, ...report }: RunReport, dryRun: boolean, selection: RunSelection) {
  const ended = { run_id, dry_run: dryRun, status: "finished" as const, ...selection, ...report };
  if (found === undefined) return ended;
  const { estimate, variants, would_send, would_skip } = found;
  return { ...ended, estimate, variants, would_send, would_skip };
}
