import type { EventType, Folded } from "../../../events/event-types-and-codec.ts";
import type { RecipientSource, RunEnd } from "../../../events/outreach.ts";
import { isTriedLast } from "../../../projections/contact-outreach-by-campaign.ts";
import type { Contact } from "../../../projections/contact-state.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import { isRequested } from "../../../projections/current-run.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { decideStart } from "../decide.ts";
import type { RunSelection } from "../quota-and-reasons-to-end-run.ts";
import { countsOn, countSkip, skip, write, type Comparison, type HypotheticalRun } from "./compare-rules.ts";
import { fromRunRules } from "../run-rules.ts";
import type { WalkTarget } from "./recipients-in-run-order.ts";
import { contactIn, decideIn, isSameDecision, mayGoOn, toMoment, toRules, type World } from "./redecide.ts";
import { advance, beginRun, completeRun, finishRun, postpone } from "./hypothetical-run.ts";
import { SOURCE_KINDS } from "../sources/open-sources.ts";

/**
 * Reasons for the end of a run that its rules cause. Under other rules such a run may continue with the remaining
 * recipients.
 */
const ENDED_BY_RULE: ReadonlySet<RunEnd> = new Set<RunEnd>([
  "completed",
  "daily_limit_reached",
  "limit_reached",
  "window_closed",
  "too_many_failures",
]);

type Take<Type extends EventType> = (comparison: Comparison, event: Folded<Type>) => void;

/**
 * Functions that apply an event of the log to the states under the other rules, by event type. Events of all other
 * types are simply folded into both the log's states and the other ones.
 */
const TAKES: { readonly [Type in EventType]?: Take<Type> } = {
  LinkClicked() {},
  RunStarted: takeStart,
  RunRefused: takeRefusal,
  RunFinished: takeEnd,
  RunAbandoned: takeEnd,
  RunPaused: takePause,
  DirectMessageAttempted: takeAttempt,
  DirectMessageSkipped: takeSkip,
  DirectMessageSent: takeOutcome,
  DirectMessageFailed: takeOutcome,
  DirectMessageInDoubt: takeOutcome,
  DirectMessageLeft: takeOutcome,
  DirectMessageReceived: takeReaction,
  RecipientSuppressed: takeReaction,
  RecipientHeld: takeReaction,
  ConsentRecorded: takeReaction,
};

export function takeEvent(comparison: Comparison, event: Folded): void {
  const { was, would, run } = comparison;
  const take = TAKES[event.type] as Take<EventType> | undefined;
  if (take !== undefined) take(comparison, event);
  // A hypothetical run that waits for its sending window must not be ended by the end of a dry run in the log.
  else if (event.type !== "DryRunFinished" || run === undefined) would.fold(event);
  was.fold(event);
}

function takeStart(comparison: Comparison, event: Folded<"RunStarted">): void {
  const { was, would, today, changes, runs } = comparison;
  const { rules, run_id, dry_run } = event.data;
  was.rules = rules === undefined ? today : fromRunRules(rules, today);
  would.rules = { ...was.rules, ...changes };
  if (dry_run) {
    if (comparison.run === undefined) would.fold(event);
  } else {
    runs.was++;
    if (rules === undefined) runs.unrecorded++;
    const start = decideStartIn(would, comparison);
    const starts = start === "start" || start === decideStartIn(was, comparison);
    // If the hypothetical run of an earlier start is still in progress, it continues, and this start begins none.
    if (starts) comparison.run ??= beginRun(comparison, run_id, toSelection(event.data));
  }
}

function decideStartIn(world: World, { identities, ms }: Comparison) {
  return decideStart(world.state, toRules(world, identities), toMoment(world, ms), false);
}

function toSelection({ campaign, limit, ...rest }: RunSelection & { readonly recipients?: number }) {
  const { variant, basis, source, recipients } = rest;
  return omitUndefined({ campaign, limit, variant, basis, source, recipients });
}

/** Starts a hypothetical run where the log records a refusal, if only the other rules allow it. */
function takeRefusal(comparison: Comparison, { data, position }: Folded<"RunRefused">): void {
  const { was, would } = comparison;
  if (comparison.run !== undefined || data.reason === "clock_skewed") return;
  // A refused request for certain recipients is left out: the log does not hold their names.
  if (data.recipients !== undefined) return;
  if (decideStartIn(would, comparison) !== "start" || decideStartIn(was, comparison) === "start") return;
  const run = beginRun(comparison, `refused at ${position}`, toSelection(data));
  comparison.run = run;
  run.isAlone = true;
  completeRun(comparison, run);
  if (run.resumeAt === undefined) finishRun(comparison, run);
}

function takeEnd(comparison: Comparison, event: Folded<"RunFinished" | "RunAbandoned">): void {
  const { run, was, would, sources, unknown } = comparison;
  // If no hypothetical run is in progress, this is the end of a dry run, or of a run that the other rules had already
  // ended or not started.
  if (run === undefined) return would.fold(event);
  const { type, data } = event;
  if (ENDED_BY_RULE.has(type === "RunFinished" ? data.reason : "fault")) {
    completeRun(comparison, run);
    const goesOn = run.ended === undefined && mayGoOn(would, comparison) && !mayGoOn(was, comparison);
    if (goesOn && sources.some((name) => SOURCE_KINDS[name].isKnown === undefined)) unknown.unread_sources++;
    if (!run.waitsByItself) run.resumeAt = undefined;
  } else if (run.id === data.run_id) run.resumeAt = undefined;
  run.isAlone = true;
  if (run.resumeAt === undefined) finishRun(comparison, run);
}

/**
 * The log's run begins to wait for the sending window here. So the hypothetical run now gives a turn to all its
 * recipients whose window is open.
 */
function takePause(comparison: Comparison, { data }: Folded<"RunPaused">): void {
  const { run } = comparison;
  if (data.reason === "window_closed" && run !== undefined) completeRun(comparison, run);
}

function takeAttempt(comparison: Comparison, event: Folded<"DirectMessageAttempted">): void {
  const { day, links = [], decided_at = event.time } = event.data;
  const { run, lostLinks } = comparison;
  comparison.ms = msOf(decided_at);
  countsOn(comparison, day).messages.was++;
  const isSame = run !== undefined && run.ended === undefined && wouldLeave(comparison, run, event);
  if (!isSame) for (const link of links) lostLinks.add(link);
}

/**
 * Decides again, under the other rules, about a message that the log records, and folds the result. True if the same
 * message would be sent.
 */
function wouldLeave(comparison: Comparison, run: HypotheticalRun, event: Folded<"DirectMessageAttempted">): boolean {
  const { was, would } = comparison;
  const { recipient, source, basis } = event.data;
  const met = { recipient, source, basis };
  // A requested recipient had their turn before all sources, so this message does not show how far the run had read its
  // sources.
  const { current } = was.state.run;
  if (!isRequested(current, recipient))
    advance(comparison, run, toTarget(contactIn(would, recipient), source, event.data.campaign));
  if (run.ended !== undefined) return false;
  const decided = decideIn(would, comparison, met);
  const before = decideIn(was, comparison, met);
  if (before.kind !== "write") comparison.unexplained++;
  const contact = contactIn(would, recipient);
  const hadTurn = contact !== undefined && run.seen.has(contact);
  if (decided.kind === "write" || isSameDecision(before, decided)) {
    const isSameText = attempt(comparison, run, event, (decided.kind === "write" ? decided.variant : "") ?? "");
    const written = contactIn(would, recipient);
    if (written !== undefined) run.seen.add(written);
    return isSameText;
  }
  if (decided.kind === "skip" && !decided.isRecorded && !hadTurn) skip(comparison, run, recipient, decided.reason);
  else if (decided.kind === "closed") postpone(comparison, run, recipient, before);
  else if (decided.kind === "end") run.ended = decided.reason;
  return false;
}

/**
 * Folds a recorded message into the states under the other rules: unchanged, or as a message with another template's
 * text. True if it is unchanged.
 */
function attempt(
  comparison: Comparison,
  { id: run_id }: HypotheticalRun,
  event: Folded<"DirectMessageAttempted">,
  variant: string,
): boolean {
  const { would, changes, ms } = comparison;
  const { attempt_id, recipient, template, day, campaign } = event.data;
  const now = toMoment(would, ms);
  // The question's other template replaces only that of `default`, because each other campaign has its own text.
  if (
    campaign === undefined &&
    template !== undefined &&
    changes.template !== undefined &&
    template !== changes.template.id
  ) {
    write(comparison, { attempt_id, run_id, recipient }, variant);
    return false;
  }
  const moved = changes.timezone === undefined ? { day } : { day: now.day, timezone: now.timezone };
  countsOn(comparison, moved.day).messages.would++;
  would.fold({ ...event, data: { ...event.data, ...moved, run_id } });
  return true;
}

/**
 * Returns the recipient where the hypothetical run must stop, and the source in which the log's run found this
 * recipient. For a retried recipient, the log names no source or `list`, so the source follows from the contact.
 */
function toTarget(
  contact: Contact | undefined,
  source: RecipientSource | undefined,
  campaign: string | undefined,
): WalkTarget {
  if (contact !== undefined && isTriedLast(contact, campaign)) return { contact, source: "last" };
  const isAgain = contact !== undefined && SOURCE_KINDS.again.isKnown?.(contact, campaign) === true;
  return { contact, source: isAgain ? "again" : (source ?? "again") };
}

function takeSkip(comparison: Comparison, event: Folded<"DirectMessageSkipped">): void {
  const { was, would, run } = comparison;
  const { recipient, reason } = event.data;
  countSkip(comparison, "was", reason);
  if (run === undefined || run.ended !== undefined) return;
  const decided = decideIn(would, comparison, { recipient });
  if (isSameDecision(decideIn(was, comparison, { recipient }), decided)) {
    countSkip(comparison, "would", reason);
    would.fold({ ...event, data: { ...event.data, run_id: run.id } });
  } else if (decided.kind === "skip") {
    if (!decided.isRecorded) skip(comparison, run, recipient, decided.reason);
  } else if (contactIn(would, recipient)?.listed !== true || isRequested(was.state.run.current, recipient)) {
    run.deferred.push({ recipient });
  }
}

type OutcomeType = "DirectMessageSent" | "DirectMessageFailed" | "DirectMessageInDoubt" | "DirectMessageLeft";

function takeOutcome(comparison: Comparison, event: Folded<OutcomeType>): void {
  const { was, would } = comparison;
  const { attempt_id } = event.data;
  const [day, wouldDay] = [was, would].map(({ state }) => state.quota.open.get(attempt_id));
  if (event.type === "DirectMessageSent") {
    if (day !== undefined) countsOn(comparison, day).sent.was++;
    if (wouldDay !== undefined) countsOn(comparison, wouldDay).sent.would++;
  }
  if (wouldDay !== undefined) would.fold(event);
}

type ReactionType = "DirectMessageReceived" | "RecipientSuppressed" | "RecipientHeld" | "ConsentRecorded";

/**
 * Folds a recipient's reaction into the states under the other rules. If it answers a message that those rules would
 * not have sent, it counts as unknown instead.
 */
function takeReaction(comparison: Comparison, event: Folded<ReactionType>): void {
  const { was, would, unknown } = comparison;
  const { recipient } = event.data;
  const isLost =
    isAnswer(was, event) && recipient !== undefined && contactIn(would, recipient)?.attempted_at === undefined;
  if (isLost) unknown.reactions++;
  else would.fold(event);
}

/** True if the event is a recipient's answer to a message of ours. */
function isAnswer(world: World, { type, data }: Folded<ReactionType>): boolean {
  const { recipient, message_id } = data;
  if (recipient === undefined || message_id === undefined) return false;
  const at = contactIn(world, recipient)?.attempted_at;
  return at !== undefined && (type !== "DirectMessageReceived" || data.received_at >= at);
}
