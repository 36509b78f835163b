import type { Static, TObject } from "@sinclair/typebox";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { Recipient, SkipReason } from "../../events/outreach.ts";
import type { Campaigns } from "../../projections/campaigns.ts";
import { findMissingEvidence } from "../../projections/consent.ts";
import { countReachable, countWritable } from "../../projections/contact-outreach-by-campaign.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { usedAt } from "../../projections/quota.ts";
import type { OutreachConfig } from "../config/outreach.ts";
import { READ_USD, toCost } from "../history/run-list-and-page.ts";
import { isErased } from "../history/event-sentences.ts";
import { describeSelection, PAUSES } from "../history/sentences/outreach.ts";
import { formatSentence } from "../history/sentences/sentence-parts.ts";
import { countContacted } from "../../projections/runs.ts";
import { eventAt, STREAMS } from "../log/event-log.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { grouped } from "../platform/format-numbers-and-lists.ts";
import { newestEvents, type PageMoment } from "../projector/moment-of-console-page.ts";
import { missingPlaceholders, renderAll, type Template } from "../template/template.ts";
import { showUnseen } from "../template/show-invisible-characters.ts";
import { readCampaignText } from "./campaigns/parse-campaign-text.ts";
import { listOpenCampaigns, type CampaignSettings } from "./campaigns/read-campaigns.ts";
import { messageRecipient } from "./decide.ts";
import { readStart } from "./dry-run/estimate-next-run.ts";
import { DEFAULT_SPACING_MS } from "./pacing-and-retries.ts";
import { showQuota } from "./quota-runs-and-settling.operations.ts";
import { momentIn, resetsAt } from "./quota-day.ts";
import { placesLeft, remaining } from "./quota-and-reasons-to-end-run.ts";
import { describeOptOut } from "./detect-opt-out-replies.ts";
import { changesAt, isOpen, refusesStart } from "./send-window.ts";
import { SOURCE_KINDS } from "./sources/open-sources.ts";

/** The settings that pages about runs show. */
export type RunSettings = Pick<
  OutreachConfig,
  | "dailyLimit"
  | "gapDays"
  | "timezone"
  | "window"
  | "template"
  | "stopWords"
  | "requireConsent"
  | "sources"
  | "sendSpacingSeconds"
  | "report"
>;

/** Reads the used quota of the moment's day. */
export function readQuota({ reader }: { readonly reader: Parameters<typeof showQuota.run>[0] }) {
  return showQuota.run(reader, {}, {}) as Promise<Static<TObject<typeof showQuota.output>>>;
}

/** Reads the run in progress, the end of the last run, and the state of the sending window. */
export async function readRunStatus(moment: PageMoment<"quota" | "run" | "runs">, settings: RunSettings) {
  const [end] = await newestEvents(moment, { types: ["RunFinished", "RunAbandoned"], limit: 1 });
  return {
    current: readCurrentRun(moment, settings),
    last: end === undefined ? undefined : toEnded(moment, end as EndOfRun),
    dry: await readNewestDryRun(moment, settings),
    window: readWindow(moment, settings),
  };
}

function readCurrentRun({ state, now }: PageMoment<"quota" | "run" | "runs">, settings: RunSettings) {
  const { current } = state("run");
  if (current === null) return undefined;
  const { run_id, dry_run, sent, skipped, failed, in_doubt, places, waiting, stop_requested_at } = current;
  const contacted = countContacted(state("runs").started.get(run_id));
  const left = placesLeft({ quota: state("quota"), run: state("run") }, settings, momentIn(settings.timezone, now));
  const isWaiting = waiting !== null && stop_requested_at === null && Date.parse(waiting.until) > now;
  return {
    runId: run_id,
    isDry: dry_run,
    sent,
    /**
     * Maximum number of messages that the run will have sent, including those that are being sent. It sends fewer if it
     * runs out of recipients.
     */
    sentMax: places + left,
    skipped: skipped - contacted,
    contacted,
    failed,
    inDoubt: in_doubt,
    /** Limits of the run as text, such as ` with at most 20 messages`; empty for a run for all recipients. */
    selection: formatSentence(describeSelection(current)),
    waiting: isWaiting ? { why: PAUSES[waiting.reason], until: waiting.until } : undefined,
    stopRequestedAt: stop_requested_at ?? undefined,
  };
}

type EndOfRun = Recorded<"RunFinished"> | Recorded<"RunAbandoned">;

/** Returns the end of a run, with the outcomes of its messages that were found out after it. */
function toEnded({ state }: PageMoment<"runs">, { type, time, data }: EndOfRun) {
  const { run_id } = data;
  const run = state("runs").started.get(run_id);
  const contacted = countContacted(run);
  const { sent, skipped, failed, in_doubt } = run?.end ?? data;
  const [reason, until] = type === "RunFinished" ? [data.reason, data.until] : (["abandoned", undefined] as const);
  return { runId: run_id, time, reason, until, sent, skipped, contacted, failed, inDoubt: in_doubt };
}

/** Reads whether the sending window is open, and until when. Undefined if messages may go out at any time. */
function readWindow({ now }: PageMoment, { window, timezone }: RunSettings) {
  if (window === undefined) return undefined;
  const { hours, text, zone } = window;
  const change = changesAt(hours, timezone, now);
  return {
    text,
    isOfRecipients: zone === "recipient",
    isOpen: isOpen(hours, timezone, now),
    changesAt: change === undefined ? undefined : isoTime(change),
  };
}

/**
 * Returns why a run would be refused now, and until when: the quota is used up, or the sending window is closed.
 * Undefined if neither is so, or while a run is in progress.
 */
export function readRunRefusal({ stateNow, now }: PageMoment, settings: RunSettings) {
  const { dailyLimit, timezone, window } = settings;
  const quota = stateNow("quota");
  if (stateNow("run").current !== null) return undefined;
  const day = momentIn(timezone, now);
  if (remaining({ quota }, settings, day) === 0) {
    return { why: "Today's messages are used up", until: isoTime(resetsAt(quota, dailyLimit, day)) };
  }
  if (window === undefined || !refusesStart(window, { ...day, clockMs: now })) return undefined;
  const opensAt = changesAt(window.hours, timezone, now);
  return { why: "The sending window is closed", until: opensAt === undefined ? undefined : isoTime(opensAt) };
}

/** Number of recipients on one page of a dry run. */
const SENDS_SHOWN = 50;

/** The newest dry run that has ended, for the overview. Undefined if there was none. */
async function readNewestDryRun(moment: PageMoment<"runs">, settings: RunSettings) {
  const newest = [...moment.state("runs").started].findLast(([, { dry_run, end }]) => dry_run && end !== null);
  if (newest === undefined) return undefined;
  const [runId, run] = newest;
  const { position, end } = run;
  const { caller, selection: limits } = await readRunStarted(moment, position);
  return {
    runId,
    at: end!.at,
    caller,
    limits,
    sends: end!.sent,
    skips: end!.skipped,
    contacted: countContacted(run),
    ...readStart(moment, settings, { limits, sends: end!.sent, end: end! }),
  };
}

/**
 * Reads who started a run, for which recipients and with which template. `position`: that of the event that started it.
 */
async function readRunStarted({ store }: PageMoment, position: number) {
  const event = await eventAt(store, position);
  if (event.type !== "RunStarted") throw new Error(`no run starts at position ${position}`);
  const { run_id: _id, dry_run: _dry, rules, ...selection } = event.data;
  return { caller: event.meta.caller, selection, template: rules?.template };
}

/** A dry run as its page shows it. */
export type ShownDryRun = NonNullable<Awaited<ReturnType<typeof readDryRun>>>;

/**
 * Reads a finished dry run, with its recipients from position `from` on. Texts are rendered now, so there are none if
 * the template has changed since. Undefined if there is no such dry run.
 */
export async function readDryRun(
  moment: PageMoment<"account" | "campaigns" | "contacts" | "quota" | "runs">,
  settings: RunSettings & { readonly campaigns: CampaignSettings },
  { runId, from }: { readonly runId: string; readonly from: number | undefined },
) {
  const run = moment.state("runs").started.get(runId);
  if (run?.dry_run !== true || run.end === null) return undefined;
  const { at, position } = run.end;
  const event = await eventAt(moment.store, position);
  if (event.type !== "DryRunFinished") throw new Error(`no dry run ends at position ${position}`);
  const {
    reason,
    until,
    usage,
    estimate,
    would_send: sends,
    would_skip,
    skips = {},
    passed = {},
    variants = {},
  } = event.data;
  const { caller, selection, template: templateId } = await readRunStarted(moment, run.position);
  const message = readMessage(moment.state("campaigns"), settings, selection.campaign);
  const template = message?.id === templateId ? message : undefined;
  const toRow = createToRow(moment, template);
  const listed = await readListed(moment, { from: run.position, to: position });
  const rows = listed.sends.filter((one) => from === undefined || one.position >= from);
  const { timezone, dailyLimit } = settings;
  const used = usedAt(moment.state("quota"), momentIn(timezone, moment.now));
  const handled = skips["already_contacted"] ?? 0;
  return {
    startedAt: run.started_at,
    at,
    caller,
    /** Limits of the run as text, such as ` with at most 20 messages`; empty for a run for all recipients. */
    selection: formatSentence(describeSelection(selection)),
    limits: selection,
    template: run.template,
    campaign: selection.campaign ?? DEFAULT_CAMPAIGN,
    /** Number of people in the log. A dry run that ended early has judged fewer. */
    known: moment.state("contacts").people.size,
    isTemplateChanged: template === undefined && templateId !== undefined,
    optOut: describeOptOut({ template: message, stopWords: settings.stopWords }),
    reason,
    until,
    sends,
    /**
     * Numbers of recipients who would get no message: `handled` because of an earlier one, `skipped` for other reasons
     * that a run records, and `passed` for reasons that the log holds already.
     */
    handled,
    skipped: would_skip - handled,
    passed: Object.entries(passed).map(([reason, count]) => ({ reason, count })),
    skips: groupSkips(skips, listed.skips),
    /** Upper bound of the cost of the dry run itself in US dollars. Undefined in older dry runs. */
    paid: usage?.usd,
    /**
     * Upper bound of the cost of the run, which reads what the dry run has read. X says that it charges a repeated read
     * once a UTC day, but does not guarantee it, so every read counts.
     */
    costs: estimate && toCost(estimate),
    /**
     * Duration of the run in seconds: one interval for each message, either the configured one or, without it, the
     * interval that X documents.
     */
    seconds: sends * (settings.sendSpacingSeconds ?? DEFAULT_SPACING_MS / 1000),
    quota: { used, after: Math.min(dailyLimit, used + sends), limit: dailyLimit },
    resetsAt: isoTime(resetsAt(moment.state("quota"), dailyLimit, momentIn(timezone, moment.now))),
    variants: Object.entries(variants).map(([variant, count]) => {
      const sample = listed.sends.find(({ data }) => data.variant === variant);
      return { variant, count, sample: sample && toRow(sample) };
    }),
    rows: rows.slice(0, SENDS_SHOWN).map(toRow),
    next: rows[SENDS_SHOWN]?.position,
    ...readStart(moment, settings, { limits: selection, sends, end: run.end }),
  };
}

/**
 * Returns a function that makes the row of a listed recipient, with the text as the template and the log render it now.
 */
function createToRow({ state }: PageMoment<"contacts">, template: Template | undefined) {
  const textFor = (recipient: Recipient, name: string | undefined, variant: string): string | undefined => {
    if (template === undefined || isErased(recipient)) return undefined;
    const known = messageRecipient(findPerson(state("contacts"), recipient), { ...recipient, name: name ?? "" });
    const { rendered } = renderAll(template, known).find((one) => one.variant === variant) ?? {};
    return rendered?.ok === true ? showUnseen(rendered.text) : undefined;
  };
  return ({ data: { recipient, name, variant = "" } }: Recorded<"DryRunRecipientListed">) => {
    const contact = findPerson(state("contacts"), recipient);
    const named = { ...recipient, name: contact?.name ?? name };
    return { recipient: named, variant, text: textFor(recipient, name, variant) };
  };
}

/**
 * Separates the campaign from the variant in fields whose `campaign` names both, such as `spring B`. One list offers
 * both, so that no variant of another campaign can be chosen.
 */
export function separateVariant(fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [, campaign, variant] = /^(\S+) ([A-Z])$/.exec(fields["campaign"] ?? "") ?? [];
  return campaign === undefined || variant === undefined ? fields : { ...fields, campaign, variant };
}

/** Returns the message that a run of the campaign would send now; undefined without one. */
export function readMessage(
  { named }: Campaigns,
  { template, campaigns: { config } }: RunSettings & { readonly campaigns: CampaignSettings },
  campaign = DEFAULT_CAMPAIGN,
): Template | undefined {
  const definition = named.get(campaign);
  if (definition === undefined) return template;
  const addresses = { linkBase: config.links.base, optOutBase: config.outreach.optOutBase };
  return readCampaignText(definition, addresses).template;
}

/** Groups the recipients that a dry run would skip by the reason, the most frequent first. */
function groupSkips(skips: Readonly<Record<string, number>>, listed: readonly Recorded<"DryRunRecipientListed">[]) {
  return Object.entries(skips)
    .filter(([name]) => name !== "already_contacted")
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => {
      const named = listed.filter(({ data }) => data.reason === name).map(({ data }) => data);
      return { reason: name as SkipReason, count, recipients: named };
    });
}

/** Reads the recipients that a dry run lists. */
async function readListed({ store }: PageMoment, range: { readonly from: number; readonly to: number }) {
  const sends: Recorded<"DryRunRecipientListed">[] = [];
  const skips: Recorded<"DryRunRecipientListed">[] = [];
  for await (const event of store.read({ stream: STREAMS.outreach, types: ["DryRunRecipientListed"], ...range })) {
    if (event.type === "DryRunRecipientListed") (event.data.variant === undefined ? skips : sends).push(event);
  }
  return { sends, skips };
}

/**
 * Returns the checks before a run, each with a sentence: what is good or, if it is not, what the operator should do.
 */
export function checkRun(
  { state, now }: PageMoment<"account">,
  settings: RunSettings,
  { skips, startedAt, optOut }: ShownDryRun,
): readonly { readonly isGood: boolean; readonly text: string }[] {
  const { user, authorized } = state("account");
  const lacking = skips.find(({ reason }) => reason === "missing_field")?.count ?? 0;
  const { window } = settings;
  return [
    lacking === 0
      ? { isGood: true, text: "Every placeholder has a value" }
      : { isGood: false, text: `${grouped(lacking)} lack a field of the message. Import it, or give it a fallback` },
    authorized && user !== null
      ? { isGood: true, text: `X is authorized as @${user.username}` }
      : { isGood: false, text: "X is not authorized. Open /social/auth" },
    { isGood: true, text: `Replies were read until ${startedAt.slice(11, 16)} UTC` },
    ...(window === undefined
      ? []
      : [
          isOpen(window.hours, settings.timezone, now)
            ? { isGood: true, text: `The sending window is open (${window.text})` }
            : { isGood: false, text: `The sending window is closed (${window.text}). A run waits, or ends` },
        ]),
    ...(optOut === undefined ? [] : [{ isGood: optOut.isSure, text: optOut.detail }]),
  ];
}

/**
 * Cache of the number of people that a dry run may look up, as of a position: counting 100,000 takes 20 ms, and each
 * page with the button for a dry run shows the number.
 */
const lookedUp = new WeakMap<object, { readonly position: number; readonly people: number }>();

/**
 * Counts the people that a dry run of any open campaign may look up, and what that costs at most in US dollars.
 * `isOpenEnded`: sources at X may name more people.
 */
export function readDryRunCost({ stateNow, position }: PageMoment, { requireConsent, sources }: RunSettings) {
  const contacts = stateNow("contacts");
  let counted = lookedUp.get(contacts);
  if (counted?.position !== position) {
    // With several campaigns, counts all recipients who can get a message, which is an upper bound: an exact count
    // would need one pass over the recipients for each campaign.
    const hasOthers = listOpenCampaigns(stateNow("campaigns")).length > 1;
    const people = hasOthers ? countWritable(contacts) : countReachable(contacts, { requireConsent });
    counted = { position, people };
    lookedUp.set(contacts, counted);
  }
  const { people } = counted;
  return { people, usd: people * READ_USD.person, isOpenEnded: sources.some((name) => SOURCE_KINDS[name].isPaid) };
}

/**
 * Counts the recipients in the log who lack consent or its evidence, and lists the template's fields for which none has
 * a value.
 */
export function readReadiness({ state }: PageMoment<"contacts">, { template, stopWords }: RunSettings) {
  const { people, fields } = state("contacts");
  let [unagreed, unproved] = [0, 0];
  for (const contact of people.values()) {
    const [missing] = findMissingEvidence(contact);
    if (missing === "basis") unagreed++;
    else if (missing !== undefined) unproved++;
  }
  return {
    known: people.size,
    /**
     * Numbers of recipients without consent (`unagreed`), and with a consent that lacks its date or source
     * (`unproved`).
     */
    unagreed,
    unproved,
    /** Fields of the template for which no recipient has a value. */
    missingFields: template === undefined || people.size === 0 ? [] : missingPlaceholders(template, fields.keys()),
    /** How the message offers to opt out; undefined without a template. */
    optOut: describeOptOut({ template, stopWords }),
  };
}
