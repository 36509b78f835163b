import type { DataOf, EventType, Folded } from "../../../events/catalog.ts";
import { ERASED } from "../../../events/encryption.ts";
import type { Recipient, RunEnd, SkipReason } from "../../../events/outreach.ts";
import { account } from "../../../projections/account.ts";
import { contacts, isTriedLast, toRecipient, type Contact } from "../../../projections/contacts.ts";
import { quota } from "../../../projections/quota.ts";
import { run as runs } from "../../../projections/run.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { msOf } from "../../../projections/time.ts";
import type { RecipientSource } from "../../config/outreach.ts";
import { isoTime } from "../../platform/clock.ts";
import { decideStart } from "../decide.ts";
import { dayIn } from "../quota-day.ts";
import { opensAt, windowZone, type TurnMoment } from "../send-window.ts";
import { fromRunRules, type RuleChanges, type RulesInForce } from "./rules.ts";
import { addUp, compareRecipients, isChanged, noCounts, skippedFor, type Changes, type DayCounts } from "./tally.ts";
import { createWalk, type Walk, type WalkTarget } from "./walk.ts";
import {
  contactIn,
  createWorld,
  isSameDecision,
  mayGoOn,
  redecide,
  toMoment,
  toRules,
  type Identities,
  type Met,
  type Redecided,
} from "./world.ts";

/**
 * A rule that tells bots by their user agent; null: it is no longer known, or never was recorded. Undefined: then the rule
 * cannot tell.
 */
export type BotRule = (userAgent: string | null | undefined) => boolean | undefined;

export interface WhatIfQuestion {
  readonly changes: RuleChanges;
  /** Undefined: a click is a bot's as it was then. */
  readonly isBot: BotRule | undefined;
  /** Undefined: the stop words of then. `keepsAll`: all of today's are among them. */
  readonly stopWords: { readonly keepsAll: boolean } | undefined;
  /** Today's, for runs that recorded none. */
  readonly today: RulesInForce;
  /** Today's, in the order in which they are merged. */
  readonly sources: readonly RecipientSource[];
  readonly runMaxMs: number;
  readonly identities: Identities;
  /** Recipients named in each list at most. */
  readonly limit: number;
}

/** What no log can know. */
export interface UnknownCounts {
  /** Replies and opt-outs that answer messages which would not have left. */
  reactions: number;
  /** Opt-outs that were read by other stop words: they stay. */
  opt_outs: number;
  /** Messages read, whose texts are not kept: other stop words may be in them. */
  messages_read: number;
  /** Runs that would have gone on to recipients whom only the network knows. */
  unread_sources: number;
}

export interface WhatIf {
  /** Of the days on which something differs, in their order. */
  readonly days: ReadonlyMap<string, DayCounts>;
  readonly total: DayCounts;
  readonly recipients: Changes;
  readonly unknown: UnknownCounts;
  readonly runs: {
    was: number;
    would: number;
    /** Those that recorded no rules, so that today's are taken for theirs. */
    unrecorded: number;
  };
  /** Messages that today's code does not explain by the rules of then; they stay as they were. */
  readonly unexplained: number;
}

/** A run that the other rules make. */
interface WouldRun {
  readonly id: string;
  readonly startedMs: number;
  walk: Walk;
  /** Those of the last page that had no turn yet. */
  open: Contact[];
  source: WalkTarget["source"];
  /** Each recipient has one turn. */
  readonly seen: Set<Contact>;
  /** Of a page of the network: skipped, but not under the other rules. */
  deferred: Met[];
  /** Zones where the window is closed for recipients that are left. */
  readonly zones: Set<string>;
  /** When it goes on, ms since 1970. */
  resumeAt: number | undefined;
  ended: RunEnd | undefined;
  /** The run of the log is over: this one only waits for its window. */
  isAlone: boolean;
}

/** What decides, and is decided; all other events change neither world. */
export const WHAT_IF_TYPES: readonly EventType[] = [
  ...new Set([...runs.types, ...quota.types, ...contacts.types, ...account.types]),
  "RunRefused",
  "LinkClicked",
];

/** A clock of an instance may be ahead of the log's by a moment, so a run goes on so long after the opening. */
const OPENING_MARGIN_MS = 1_000;

/** Ends by a rule: under other rules the run may go on to the recipients that are left. */
const ENDED_BY_RULE: ReadonlySet<RunEnd> = new Set<RunEnd>([
  "completed",
  "daily_limit_reached",
  "limit_reached",
  "window_closed",
  "too_many_failures",
]);

const QUARTER_MS = 15 * 60_000;

/**
 * Decides all runs of a log again, by the same functions and under other rules, in one pass. Two worlds are folded: the
 * log as it is, and as it would be. Where both decide alike the event of the log holds for both, so what the network and
 * people did stays as it was; where they differ, nothing is invented.
 */
export function createWhatIf(question: WhatIfQuestion) {
  const { changes, isBot, identities, sources, runMaxMs, today } = question;
  const was = createWorld(today);
  const would = createWorld({ ...today, ...changes });
  const days = new Map<string, DayCounts>();
  const unknown: UnknownCounts = { reactions: 0, opt_outs: 0, messages_read: 0, unread_sources: 0 };
  const made = { was: 0, would: 0, unrecorded: 0 };
  let unexplained = 0;
  let run: WouldRun | undefined;
  let position = 0;
  /** Links of messages that would not have left. */
  const lostLinks = new Set<string>();
  /** A click is attributed by the event behind it, if that says whose link it came by. */
  let click: Folded<"LinkClicked"> | undefined;

  const countsOf = (day: string): DayCounts => {
    const counts = days.get(day) ?? noCounts();
    days.set(day, counts);
    return counts;
  };
  const dayCache = { key: "", day: "" };
  const dayAt = (timezone: string, ms: number): string => {
    const key = `${timezone} ${Math.floor(ms / QUARTER_MS)}`;
    if (dayCache.key !== key) Object.assign(dayCache, { key, day: dayIn(timezone, ms) });
    return dayCache.day;
  };
  const countSkip = (side: "was" | "would", reason: SkipReason, ms: number): void => {
    skippedFor(countsOf(dayAt((side === "was" ? was : would).rules.timezone, ms)), reason)[side]++;
  };
  const decideIn = (world: typeof was, met: Met, ms: number): Redecided =>
    redecide(world, identities, met, toMoment(world, ms));

  /** Folds an event that the log does not hold into the world of the other rules. */
  const invent = <
    T extends "DirectMessageAttempted" | "DirectMessageSent" | "DirectMessageSkipped" | "RunStarted" | "RunFinished",
  >(
    type: T,
    data: DataOf<T>,
    ms: number,
  ): void => {
    would.fold({ type, data, position, version: 0, time: isoTime(ms) } as unknown as Folded);
  };
  const skip = (recipient: Recipient, reason: SkipReason, ms: number): void => {
    countSkip("would", reason, ms);
    invent("DirectMessageSkipped", { run_id: run!.id, recipient, reason }, ms);
  };
  /** A message whose outcome is unknown: it takes its place, and its recipient gets no other one. */
  const write = (id: string, recipient: Recipient, variant: string, now: TurnMoment): void => {
    const { messages, sent } = countsOf(now.day);
    messages.would++;
    sent.unknown++;
    const outcome = {
      attempt_id: id,
      run_id: run!.id,
      recipient: recipient as DataOf<"DirectMessageSent">["recipient"],
    };
    const { day, timezone } = now;
    invent("DirectMessageAttempted", { ...outcome, text: "", variant, links: [], day, timezone }, now.ms);
    invent("DirectMessageSent", { ...outcome, message_id: "", settled_by: "answer" }, now.ms);
  };
  /** All that both worlds know of a recipient's names. */
  const named = (contact: Contact): Recipient => {
    const recipient = toRecipient(contact);
    const known = contactIn(was, recipient);
    return known === undefined ? recipient : { ...recipient, ...toRecipient(known) };
  };
  const postpone = (recipient: Recipient, ms: number): void => {
    const { window } = would.rules;
    if (window === undefined) return;
    run!.zones.add(windowZone(window, contactIn(would, recipient)?.timezone, toMoment(would, ms)));
  };

  /** Skips of a page come before its messages. */
  const openBatch = (one: WouldRun, batch: NonNullable<ReturnType<Walk["next"]>>, ms: number): void => {
    const { source, people } = batch;
    one.source = source;
    one.open = people.filter((contact) => {
      if (one.seen.has(contact) || (source !== "last" && isTriedLast(contact))) return false;
      const met = toMet(named(contact), source);
      const decided = decideIn(would, met, ms);
      if (decided.kind !== "skip") return decided.kind !== "pass";
      skipUnlessSame(met, decided, ms);
      return false;
    });
  };
  const skipUnlessSame = (met: Met, decided: Extract<Redecided, { kind: "skip" }>, ms: number): void => {
    if (decided.isRecorded || isSameDecision(decideIn(was, met, ms), decided)) return;
    skip(met.recipient, decided.reason, ms);
  };

  /** The turn of a recipient of whom the log has nothing in this run. False: no other one comes behind it. */
  const visit = (one: WouldRun, met: Met, ms: number): boolean => {
    const contact = contactIn(would, met.recipient);
    if (contact !== undefined && one.seen.has(contact)) return true;
    const decided = decideIn(would, met, ms);
    const before = decideIn(was, met, ms);
    if (decided.kind === "skip") skipUnlessSame(met, decided, ms);
    else if (decided.kind === "closed") postpone(met.recipient, ms);
    else if (decided.kind === "end") {
      // Where the run ends by the rules of then too, the log says whether it did.
      if (before.kind !== "end") one.ended = decided.reason;
      return false;
    } else if (decided.kind === "write") {
      // Where the same was decided and the log has no message, something else stood in the way, and would again.
      const isSame = before.kind === "write";
      if (!isSame) write(`${one.id}/${one.seen.size}`, met.recipient, decided.variant ?? "", toMoment(would, ms));
      const found = contactIn(would, met.recipient);
      if (found !== undefined) one.seen.add(found);
    }
    return true;
  };

  /** Gives all a turn who come before the target; without one, all that are left. */
  const advance = (one: WouldRun, ms: number, target?: WalkTarget): void => {
    const isOnWay = target === undefined || one.walk.leadsTo(target, one.open);
    while (isOnWay && one.ended === undefined) {
      const [next] = one.open;
      if (next === undefined) {
        const batch = one.walk.next(target);
        if (batch === undefined) break;
        openBatch(one, batch, ms);
        continue;
      }
      if (target !== undefined && next === target.contact) break;
      if (!visit(one, toMet(named(next), one.source), ms)) return;
      one.open.shift();
    }
    while (one.ended === undefined && one.deferred[0] !== undefined && visit(one, one.deferred[0], ms))
      one.deferred.shift();
  };

  const begin = (id: string, data: Partial<DataOf<"RunStarted">>, ms: number): WouldRun => {
    made.would++;
    const { limit, variant, basis, source } = data;
    const selection = Object.fromEntries(
      Object.entries({ limit, variant, basis, source }).filter(([, value]) => value !== undefined),
    );
    invent("RunStarted", { run_id: id, dry_run: false, ...selection }, ms);
    return {
      id,
      startedMs: ms,
      walk: createWalk(would.state.contacts, sources),
      open: [],
      source: "again",
      seen: new Set(),
      deferred: [],
      zones: new Set(),
      resumeAt: undefined,
      ended: undefined,
      isAlone: false,
    };
  };
  const finish = (one: WouldRun, ms: number): void => {
    const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
    invent("RunFinished", { run_id: one.id, reason: one.ended ?? "completed", ...counts }, ms);
    run = undefined;
  };
  /** Gives all that are left a turn; those whose window is closed get theirs when it opens, if the run waits for that. */
  const complete = (one: WouldRun, ms: number): void => {
    advance(one, ms);
    const { window } = would.rules;
    if (one.ended !== undefined || window === undefined || one.zones.size === 0) return;
    const openings = [...one.zones].map((zone) => opensAt(window, zone, toMoment(would, ms)));
    const resumeAt = Math.min(...openings) + OPENING_MARGIN_MS;
    one.zones.clear();
    if (window.whenClosed === "end") one.ended = "window_closed";
    else Object.assign(one, { resumeAt, walk: createWalk(would.state.contacts, sources), open: [] });
  };
  const resumeUntil = (ms: number): void => {
    while (run?.resumeAt !== undefined && run.resumeAt <= ms) {
      const at = run.resumeAt;
      run.resumeAt = undefined;
      if (run.isAlone && at > run.startedMs + runMaxMs) run.ended = "time_limit";
      else complete(run, at);
      if (run.isAlone && run.resumeAt === undefined) finish(run, at);
    }
  };

  const startRun = (event: Folded<"RunStarted">, ms: number): void => {
    const { rules, run_id, dry_run } = event.data;
    was.rules = rules === undefined ? today : fromRunRules(rules, today);
    would.rules = { ...was.rules, ...changes };
    if (!dry_run) {
      made.was++;
      if (rules === undefined) made.unrecorded++;
      const start = decideStart(would.state, toRules(would, identities), toMoment(would, ms), false);
      const started = decideStart(was.state, toRules(was, identities), toMoment(was, ms), false);
      if (run === undefined && (start === "start" || start === started)) run = begin(run_id, event.data, ms);
    } else if (run === undefined) would.fold(event);
    was.fold(event);
  };
  const refuseRun = (event: Folded<"RunRefused">, ms: number): void => {
    const { reason } = event.data;
    if (run !== undefined || reason === "clock_skewed") return;
    if (decideStart(would.state, toRules(would, identities), toMoment(would, ms), false) !== "start") return;
    if (decideStart(was.state, toRules(was, identities), toMoment(was, ms), false) === "start") return;
    run = begin(`refused at ${event.position}`, event.data, ms);
    run.isAlone = true;
    complete(run, ms);
    if (run.resumeAt === undefined) finish(run, ms);
  };
  const endRun = (event: Folded<"RunFinished" | "RunAbandoned">, ms: number): void => {
    if (run !== undefined) {
      const reason = event.type === "RunFinished" ? event.data.reason : "fault";
      if (ENDED_BY_RULE.has(reason)) {
        complete(run, ms);
        const goesOn = run.ended === undefined && mayGoOn(would, identities, ms) && !mayGoOn(was, identities, ms);
        if (goesOn && sources.some((name) => !isKnownSource(name))) unknown.unread_sources++;
      } else if (run.id === event.data.run_id) run.resumeAt = undefined;
      run.isAlone = true;
      if (run.resumeAt === undefined) finish(run, ms);
    }
    was.fold(event);
  };

  const attempt = (event: Folded<"DirectMessageAttempted">, ms: number): void => {
    const { data } = event;
    countsOf(data.day).messages.was++;
    if (!decideAttempt(event, ms)) for (const link of data.links ?? []) lostLinks.add(link);
    was.fold(event);
  };
  /** Whether the message would have left, as it is. */
  const decideAttempt = (event: Folded<"DirectMessageAttempted">, ms: number): boolean => {
    if (run === undefined || run.ended !== undefined) return false;
    const { recipient, source, basis, attempt_id, template, day } = event.data;
    const met = { recipient, source, basis };
    advance(run, ms, toTarget(contactIn(would, recipient), source));
    if (run.ended !== undefined) return false;
    const decided = decideIn(would, met, ms);
    const before = decideIn(was, met, ms);
    if (before.kind !== "write") unexplained++;
    const contact = contactIn(would, recipient);
    const hadTurn = contact !== undefined && run.seen.has(contact);
    if (decided.kind !== "write" && !isSameDecision(before, decided)) {
      if (decided.kind === "skip" && !decided.isRecorded && !hadTurn) skip(recipient, decided.reason, ms);
      else if (decided.kind === "closed") postpone(recipient, ms);
      else if (decided.kind === "end") run.ended = decided.reason;
      return false;
    }
    const isSameText = template === undefined || changes.template === undefined || template === changes.template.id;
    const now = toMoment(would, ms);
    if (isSameText) {
      const moved = changes.timezone === undefined ? {} : { day: now.day, timezone: now.timezone };
      countsOf(moved.day ?? day).messages.would++;
      would.fold({ ...event, data: { ...event.data, ...moved, run_id: run.id } });
    } else write(attempt_id, recipient, decided.kind === "write" ? (decided.variant ?? "") : "", now);
    const written = contactIn(would, recipient);
    if (written !== undefined) run.seen.add(written);
    return isSameText;
  };
  const skipped = (event: Folded<"DirectMessageSkipped">, ms: number): void => {
    const { recipient, reason } = event.data;
    countSkip("was", reason, ms);
    if (run !== undefined && run.ended === undefined) {
      const met = { recipient };
      const decided = decideIn(would, met, ms);
      const before = decideIn(was, met, ms);
      if (isSameDecision(before, decided)) {
        countSkip("would", reason, ms);
        would.fold({ ...event, data: { ...event.data, run_id: run.id } });
      } else if (decided.kind === "skip") {
        if (!decided.isRecorded) skip(recipient, decided.reason, ms);
      } else if (contactIn(would, recipient)?.listed !== true) run.deferred.push(met);
    }
    was.fold(event);
  };
  const settle = (event: Folded<"DirectMessageSent" | "DirectMessageFailed" | "DirectMessageInDoubt">): void => {
    const { attempt_id } = event.data;
    const day = was.state.quota.open.get(attempt_id);
    const wouldDay = would.state.quota.open.get(attempt_id);
    if (event.type === "DirectMessageSent") {
      if (day !== undefined) countsOf(day).sent.was++;
      if (wouldDay !== undefined) countsOf(wouldDay).sent.would++;
    }
    was.fold(event);
    if (wouldDay !== undefined) would.fold(event);
  };

  /** What a recipient says to a message that they would not have got is not known. */
  const react = (event: Folded<"DirectMessageReceived" | "RecipientSuppressed" | "ConsentRecorded">): void => {
    const { recipient, message_id } = event.data;
    const before = recipient && contactIn(was, recipient)?.attempted_at;
    const isAnswer =
      message_id !== undefined &&
      before !== undefined &&
      (event.type !== "DirectMessageReceived" || event.data.received_at >= before);
    const isLost = isAnswer && contactIn(would, recipient!)?.attempted_at === undefined;
    if (isLost) unknown.reactions++;
    else would.fold(event);
    if (event.type === "RecipientSuppressed" && message_id !== undefined && question.stopWords?.keepsAll === false)
      unknown.opt_outs++;
    was.fold(event);
  };

  const countClick = (clicked: Folded<"LinkClicked">, code: string | undefined): void => {
    const { bot, domain, short_code } = clicked.data;
    const ms = msOf(clicked.time);
    if (!bot) countsOf(dayAt(was.rules.timezone, ms)).clicks.was++;
    const counts = countsOf(dayAt(would.rules.timezone, ms)).clicks;
    const isKnown = code !== undefined && would.state.contacts.links.has(code);
    const isLost = !isKnown && lostLinks.has(linkKey(domain, short_code));
    const isBotNow = isBot === undefined ? bot : judgeClick(clicked.data, isBot);
    if (isBotNow === true) return;
    if (isBotNow === undefined || isLost) counts.unknown++;
    else counts.would++;
  };
  const flushClick = (code?: string): void => {
    if (click !== undefined) countClick(click, code);
    click = undefined;
  };

  const take = (event: Folded): void => {
    const ms = msOf(event.time);
    position = event.position;
    flushClick(event.type === "PersonalLinkClicked" ? event.data.code : undefined);
    resumeUntil(ms);
    switch (event.type) {
      case "LinkClicked":
        click = event;
        return;
      case "RunStarted":
        return startRun(event, ms);
      case "RunRefused":
        return refuseRun(event, ms);
      case "RunFinished":
      case "RunAbandoned":
        return endRun(event, ms);
      case "RunPaused":
        // While the window is closed for the others, all for whom it is open had their turn.
        if (event.data.reason === "window_closed" && run !== undefined) complete(run, ms);
        was.fold(event);
        return;
      case "DirectMessageAttempted":
        return attempt(event, ms);
      case "DirectMessageSkipped":
        return skipped(event, ms);
      case "DirectMessageSent":
      case "DirectMessageFailed":
      case "DirectMessageInDoubt":
        return settle(event);
      case "DirectMessageReceived":
      case "RecipientSuppressed":
      case "ConsentRecorded":
        return react(event);
      case "InboxRead":
        if (question.stopWords !== undefined) unknown.messages_read += event.data.messages;
        was.fold(event);
        return;
      case "DryRunFinished":
        was.fold(event);
        if (run === undefined) would.fold(event);
        return;
      default:
        was.fold(event);
        would.fold(event);
    }
  };

  return {
    /** Takes the events of the log in their order. */
    take,
    /** The answer, once all were taken; `now` in ms since 1970: until then a run may have waited for its window. */
    finish(now: number): WhatIf {
      flushClick();
      resumeUntil(now);
      const changed = [...days].filter(([, counts]) => isChanged(counts));
      return {
        days: new Map(changed.sort(([one], [other]) => (one < other ? -1 : 1))),
        total: addUp(days.values()),
        recipients: compareRecipients(was, would, question.limit),
        unknown,
        runs: made,
        unexplained,
      };
    },
  };
}

function toMet(recipient: Recipient, source: WalkTarget["source"]): Met {
  return { recipient, source: source === "again" || source === "last" ? undefined : source };
}

/** Where a run found a recipient: of one that it tries again the intent names no source, or the list. */
function toTarget(contact: Contact | undefined, source: RecipientSource | undefined): WalkTarget {
  if (contact !== undefined && isTriedLast(contact)) return { contact, source: "last" };
  if (contact?.again === true || source === undefined) return { contact, source: "again" };
  return { contact, source };
}

function isKnownSource(name: RecipientSource): boolean {
  return name === "list" || name === "inbound";
}

function judgeClick({ user_agent, probe, anonymous }: DataOf<"LinkClicked">, isBot: BotRule): boolean | undefined {
  if (probe !== undefined) return true;
  return isBot(anonymous === true || user_agent === ERASED ? null : user_agent);
}
