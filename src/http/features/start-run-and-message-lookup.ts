import { Type, type Static } from "@sinclair/typebox";
import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import { basis, notReachedReason, recipientSource, runEnd, skipReason, usage } from "../../../events/outreach.ts";
import { DAILY_LIMIT_MAX } from "../../config/schema.ts";
import type { RunReport } from "../../outreach/execute-run.ts";
import { warnOfMissingFields } from "../../outreach/campaigns/check-campaign.ts";
import { RECIPIENTS_MAX } from "../../outreach/requested/recipients-named-in-trigger.ts";
import { findTransientEnd } from "../../outreach/run-end-and-stop-request.ts";
import { rulesForCampaign, toOutreachRules } from "../../outreach/run-rules.ts";
import type { RunSelection } from "../../outreach/quota-and-reasons-to-end-run.ts";
import { separateVariant } from "../../outreach/run-and-dry-run-page-data.ts";
import type { Triggered } from "../../outreach/start-run.ts";
import { warnOfNoOptOut } from "../../outreach/detect-opt-out-replies.ts";
import { recipientAmong, recipientAnswer, recipientName } from "../../recipients/resolve-recipient.ts";
import { isoTime, within } from "../../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { quotaAllowance } from "../access/rate-limit.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { withHeaders } from "../server/http-response.ts";
import { objectBody, type Fields } from "../server/body.ts";
import { route, reply, type Form } from "../server/endpoint.ts";
import { leaveOutEmpty } from "../server/form-routes.ts";
import { problems, startedOrNothing } from "../server/problem.ts";
import { count, id, named, text, time } from "../../platform/common-schemas.ts";
import { countInWords, EITHER } from "../../platform/format-numbers-and-lists.ts";

/** Maximum time that a caller may wait for a run, in seconds. */
const WAIT_MAX_S = 300;

const selectionMembers = {
  campaign: Type.Optional(
    Type.String({ maxLength: 40, description: "Name of the campaign; default: `default`.", examples: ["spring"] }),
  ),
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
  recipients: Type.Optional(
    Type.Array(recipientName, {
      minItems: 1,
      maxItems: RECIPIENTS_MAX,
      description:
        "Write to these alone. Without other limits, they join a run of the campaign in progress, and come next.",
    }),
  ),
});

/** Reasons why a recipient gets no message, except `not_in_audience`, which is a reason of skips too. */
const OTHER_REASONS = notReachedReason.anyOf.filter(({ const: reason }) => reason !== "not_in_audience");

const expectedRecipient = named(
  "ExpectedRecipient",
  Type.Object({
    recipient: recipientAnswer,
    expected: Type.Union([Type.Literal("message"), Type.Literal("no_message")]),
    reason: Type.Optional(Type.Union([...skipReason.anyOf, ...OTHER_REASONS])),
    detail: Type.Optional(text("consent_at and consent_source are missing")),
  }),
);

const requestedMembers = {
  joined: Type.Optional(
    Type.Boolean({ description: "True if the recipients joined a run in progress. Only with `recipients`." }),
  ),
  recipients: Type.Optional(
    Type.Array(expectedRecipient, {
      description: "What will happen, by the log when the request came. X may still refuse. Only with `recipients`.",
    }),
  ),
};

const started = Type.Object({
  run_id: id,
  dry_run: Type.Boolean(),
  status: Type.Literal("started"),
  ...requestedMembers,
});

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
  notes: Type.Array(
    Type.String({ description: "What the operator should mend first, such as a message without a way to opt out." }),
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
  ...requestedMembers,
});

type Finished = Static<typeof finished>;

const QUOTA_HEADERS = ["ratelimit", "ratelimit-policy"];

const RUN_FORMS: readonly Form[] = [
  {
    id: "dryRunByForm",
    path: "/console/run/dry",
    body: (fields) => ({ dry_run: true, ...readSelection(fields) }),
    location: ({ run_id }: Finished) => `/runs/dry/${run_id}`,
    description: "Records a dry run, and redirects to its page.",
  },
  // The form does not wait for the run's end, because the overview shows its progress.
  { path: "/console/run/start", body: readSelection, notice: () => "The run has started." },
  {
    id: "writeToRecipientByForm",
    path: "/console/run/recipient",
    body: ({ recipient }) => ({ recipients: [recipient] }),
    notice: (answer: Static<typeof started>) => sayRequested(answer),
    description: "Starts a run for one recipient, or has them join the run in progress.",
  },
];

function sayRequested({ joined, recipients: [one] = [] }: Static<typeof started>): string {
  if (one?.reason !== undefined) return `The run will not write to them: ${one.reason.replaceAll("_", " ")}.`;
  return joined === true ? "They come next in the run in progress." : "A run for them has started.";
}

/** Converts the fields of the console's form to the selection of a run; empty fields are left out. */
function readSelection(fields: Fields) {
  const { limit = "" } = fields;
  return { ...separateVariant(leaveOutEmpty(fields)), ...(/^\d+$/.test(limit) && { limit: Number(limit) }) };
}

export function runEndpoints(context: HttpContext) {
  const { eventLog, projector, idempotency, quota } = context;
  return feature("runs", "/social")
    .post(
      "/lookup",
      async ({ call, status }) => {
        const { runner } = context;
        if (runner === undefined || !projector.state("account").authorized) throw problems.notAuthorized();
        const begun = await startedOrNothing(runner.lookUp(call.metadata));
        if (begun === "running") throw problems.running(projector.state("run").current?.run_id);
        return status(202, { status: "started" as const, ...begun });
      },
      route("lookUpMessages", "outreach", ["token", "run"], {
        body: objectBody({}),
        response: { 202: reply("Started.", Type.Object({ status: Type.Literal("started"), in_doubt: count })) },
        summary: "Looks up the messages in doubt at X.",
        description:
          "Reads each conversation twice, IN_DOUBT_SETTLE_SECONDS apart, before a message counts as not delivered. Sends nothing. The result is an event, `MessagesLookedUp`, in the caller's name. A run in progress settles them itself.",
        personalRead: false,
        problems: ["notAuthorized", "running"],
        form: {
          path: "/console/outreach/lookup",
          notice: ({ in_doubt }: { readonly in_doubt: number }) =>
            in_doubt === 0
              ? "Nothing is in doubt. A run whose process died is closed."
              : `X is asked whether ${countInWords(in_doubt, "message")} arrived. The answer comes under Newest events.`,
        },
      }),
    )
    .post(
      "/run",
      ({ body, call, status }) => {
        // If the request names recipients, every answer discloses them, also the answer to a repeat. Otherwise only the
        // answer to a dry run names recipients.
        if (body.recipients !== undefined) call.disclosed = { records: body.recipients.length };
        else if (body.dry_run !== true) call.disclosed = "nothing";
        return idempotency.once(
          call,
          body,
          async (key) => {
            const { runner } = context;
            if (runner === undefined || !projector.state("account").authorized) throw problems.notAuthorized();
            const { dry_run: dryRun = false, recipients: names, campaign: name, ...limits } = body;
            const campaign = name === DEFAULT_CAMPAIGN ? undefined : name;
            const selection = { ...limits, ...omitUndefined({ campaign }) };
            rejectUnknown(selection, context);
            const recipients = names?.map((name) => recipientAmong(projector.state("contacts"), name));
            const request = { dryRun, selection, metadata: call.metadata, ...omitUndefined({ recipients, key }) };
            // The key store is asked first, because without it the run would fail at the first event that names a
            // recipient.
            const triggering = context.encryptedLog.keyring.keys.revision().then(() => runner.trigger(request));
            const { run_id, done, expected } = startedOrThrow(await startedOrNothing(triggering), context);
            const joined = done === undefined;
            const more = expected === undefined ? {} : { joined, recipients: expected };
            // If the recipients were added to a run in progress, the answer does not wait for that run, which may be on
            // another instance.
            const waitS = dryRun || joined ? undefined : parseWait(call.request.headers.get("prefer"));
            const headers = waitS === undefined ? {} : { "preference-applied": `wait=${waitS}` };
            const report = dryRun ? await done : waitS ? await within(waitS * 1000, done!) : undefined;
            if (report !== undefined) {
              return withHeaders(status(200, { ...shown(report, dryRun, selection, context), ...more }), headers);
            }
            // The answer to a dry run always waits for its report. If there is none, the dry run failed, which was
            // logged.
            if (dryRun) throw problems.internal();
            return withHeaders(status(202, { run_id, dry_run: dryRun, status: "started" as const, ...more }), headers);
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
          202: reply("The run has started, or the recipients joined the run in progress.", started, QUOTA_HEADERS),
        },
        summary: "Starts a run of the outreach agent.",
        description:
          "Sends direct messages to the recipients who are due, within the day's quota and the sending window; one run at a time. It is one of `campaign`. `limit`, `variant`, `basis` and `source` narrow it: it skips none of the recipients that they leave out. `recipients` names those to write to: while a run of the campaign is in progress they join it, come next and are judged by its limits, unless the request has limits of its own. Each gets an outcome in the log. A dry run sends nothing, and lists the recipients a run would write to now.",
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
        limit: { name: "dm-day", allowance: () => quotaAllowance(quota, context.clock()) },
        form: RUN_FORMS,
      }),
    );
}

/**
 * Throws the problem 503 if no message template is configured, and 422 if the run is limited to a variant or a source
 * that is not configured.
 */
function rejectUnknown({ campaign, variant, source }: RunSelection, context: HttpContext): void {
  const { config, projector } = context;
  const { sources, template: own } = config.outreach;
  const campaigns = projector.state("campaigns");
  // An unknown campaign has no template to check. The start of the run refuses it.
  if (campaign !== undefined && !campaigns.named.has(campaign)) return;
  if (campaign === undefined && own === undefined) throw problems.noTemplate();
  const { template } = rulesForCampaign(toOutreachRules(context), campaigns, campaign);
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

/**
 * Returns the run that was started or, with `done` undefined, the run in progress that the recipients were added to.
 * Throws the problem that says why there is no run.
 */
function startedOrThrow(triggered: Triggered, { quota, clock }: HttpContext) {
  switch (triggered.kind) {
    case "started":
      return triggered;
    case "joined":
      return { ...triggered, done: undefined };
    case "running":
      throw problems.running(triggered.run_id);
    case "not_authorized":
      throw problems.notAuthorized();
    case "unknown_campaign":
      throw problems.unusableSelection("/campaign", `No campaign is called ${JSON.stringify(triggered.campaign)}.`);
    case "campaign_ended":
      throw problems.unusableSelection("/campaign", `The campaign ${triggered.campaign} has ended.`);
    case "unusable_text":
      throw problems.unusableSelection(
        "/campaign",
        `The settings cannot send the text of the campaign ${triggered.campaign}: ${triggered.fault}.`,
      );
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

/** Converts a run's report to the answer. A dry run's findings become members of it, next to the others. */
function shown(
  { run_id, preview: found, ...report }: RunReport,
  dryRun: boolean,
  selection: RunSelection,
  context: HttpContext,
) {
  const ended = { run_id, dry_run: dryRun, status: "finished" as const, ...selection, ...report };
  if (found === undefined) return ended;
  const { estimate, variants, would_send, would_skip } = found;
  const campaigns = context.projector.state("campaigns");
  const { template } = rulesForCampaign(toOutreachRules(context), campaigns, selection.campaign);
  const warning = warnOfNoOptOut({ template, stopWords: context.config.outreach.stopWords });
  const missing = warnOfMissingFields(template, context.projector.state("contacts"));
  const notes = [...missing, ...(warning === undefined ? [] : [warning])];
  return { ...ended, estimate, variants, would_send, would_skip, ...(notes.length === 0 ? {} : { notes }) };
}
