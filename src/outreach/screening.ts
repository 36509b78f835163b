import type { DataOf } from "../../events/event-types-and-codec.ts";
import type { Recipient, RecipientSource, RunEnd } from "../../events/outreach.ts";
import { findContact, findPerson } from "../../projections/contact-identity.ts";
import { isTriedLast } from "../../projections/contact-outreach-by-campaign.ts";
import type { Contact } from "../../projections/contact-state.ts";
import type { SocialUser } from "../networks/network.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import {
  LOOKUP_BATCH,
  outreachState,
  quotaNow,
  rulesNow,
  type BatchEntry,
  type Reader,
  type RetryPolicy,
  type RunContext,
  type Source,
} from "./run-context.ts";
import { judgeKnown, judgeUser, needsLookUp, type Refused } from "./decide.ts";
import { readNewMessages } from "./read-and-record-inbox-messages.ts";
import { isForRun } from "./judge-recipients.ts";
import { eraseLeftClicks } from "../recipients/record-consent.ts";
import { findOurs, wasRestoredToday, recordKeptOptOuts } from "./find-what-restored-log-lacks.ts";
import { toRunEnd, stopReason } from "./run-end-and-stop-request.ts";
import { pause } from "./pacing-and-retries.ts";
import { toRequestKey } from "./requested/recipients-named-in-trigger.ts";
import { placesLeft, reasonToEnd } from "./quota-and-reasons-to-end-run.ts";
import { isClosedFor, opensAt, windowZone } from "./send-window.ts";
import { lookUpUsers, namedSource, SOURCE_KINDS, toHandleKey, type TurnSource } from "./sources/open-sources.ts";

/** Acts on the recipients that a run screens: a run writes and records, a dry run notes what a run would do. */
export interface RunActions {
  readonly retry: RetryPolicy;
  /** True if the run waits for the sending window to open for the remaining recipients; false if it ends. */
  readonly pausesWhenClosed: boolean;
  /** Returns how many messages the dry run has found to send so far; 0 in a run, which sends them. */
  planned(): number;
  skip(refused: readonly Refused[]): Promise<void>;
  /** Waits until the next message may be sent. Returns the reason if the run must end instead, else undefined. */
  waitForTurn(): Promise<RunEnd | undefined>;
  /**
   * Writes to a recipient who passed all checks. Returns why the run ends, `closed` if the recipient's sending window
   * is closed, or undefined.
   */
  write(user: SocialUser, source: RecipientSource | undefined): Promise<RunEnd | "closed" | undefined>;
  /** Records that all recipients of a source's page were judged. */
  finishPage(read: Omit<DataOf<"SourceRead">, "run_id">): Promise<void>;
}

interface Screening extends RunActions, Reader {
  /**
   * Recipients that the run has looked up: network ids, and `@handle` in lower case if the network does not know them.
   * Sources overlap, and a list may name a recipient twice.
   */
  readonly seen: Set<string>;
  /** Network ids by lower-case handle, from the look-ups of this run. */
  readonly ids: Map<string, string>;
  /** Time zones of the recipients postponed in this pass, because the sending window was closed there. */
  readonly closedZones: Set<string>;
  /** Requested recipients that had their turn in this pass through the sources, one entry for each request. */
  readonly asked: Set<Recipient>;
  /** Keys of the requested recipients that had their turn in this pass through the sources. */
  readonly served: Set<string>;
  /** True if this pass postponed or left out recipients of the source, so that a later read must find them again. */
  isSourceUnfinished: boolean;
}

/** Why a run ended. `until`: when the sending window opens for the next recipient (ISO 8601). */
export interface Ended {
  readonly reason: RunEnd;
  readonly until?: string;
}

/**
 * Creates the screening of recipients for runs and dry runs. `decide.ts` judges each before and after the look-up. This
 * file also leaves out those not in this run, unknown to the network, or with a message found after a restore.
 */
export function createScreening(run: RunContext, actions: RunActions) {
  const left = (): number => placesLeft(outreachState(run), run.rules, quotaNow(run)) - actions.planned();
  const wanted = () => Math.min(LOOKUP_BATCH, Math.max(1, left()));
  const met = { seen: new Set<string>(), ids: new Map<string, string>(), closedZones: new Set<string>() };
  const turns = { asked: new Set<Recipient>(), served: new Set<string>() };
  const own = { ...met, ...turns, run, wanted, isSourceUnfinished: false };
  const screening: Screening = { ...actions, ...own };
  let screenNext = screenSources;
  return {
    /** Screens all sources in order. A further call screens only the recipients requested since. */
    async screen(): Promise<Ended> {
      const first = screenNext;
      screenNext = screenRequested;
      return wasRestoredToday(run) ? { reason: "log_restored" } : screenUntilEnd(screening, first);
    },
    /** True if this requested recipient had their turn in the present pass through the sources. */
    hadTurn: (requested: Recipient) => own.asked.has(requested),
  };
}

type Step = (screening: Screening) => Promise<RunEnd | undefined>;

async function screenUntilEnd(screening: Screening, first: Step): Promise<Ended> {
  const { run } = screening;
  try {
    for (let step = first; ; step = screenSources) {
      const end = await step(screening);
      if (end !== undefined) return { reason: end };
      const opening = nextOpening(screening);
      if (opening === undefined) return { reason: "completed" };
      // The window may have opened since the recipients were postponed.
      const isClosed = opening > run.clock();
      if (isClosed && !screening.pausesWhenClosed) return { reason: "window_closed", until: isoTime(opening) };
      const ended = await waitForOpening(screening, opening);
      if (ended !== undefined) return { reason: ended };
    }
  } catch (fault) {
    return { reason: toRunEnd(run, fault) };
  }
}

/**
 * Waits until the sending window opens. If a caller requests recipients meanwhile, the run decides about them at once,
 * because their own windows may be open.
 */
async function waitForOpening(screening: Screening, opening: number): Promise<RunEnd | undefined> {
  const { run } = screening;
  for (let until: number | undefined = opening; until !== undefined; until = nextOpening(screening)) {
    if (run.signal.aborted || until <= run.clock()) break;
    using requests = watchForRequests(screening);
    await pause({ ...run, signal: AbortSignal.any([run.signal, requests.signal]) }, "window_closed", until);
    const end = await screenRequested(screening);
    if (end !== undefined) return end;
  }
  await run.sleep(OPENING_MARGIN_MS, run.signal);
  return undefined;
}

/** Returns a signal that aborts as soon as the log holds a requested recipient that had no turn yet. */
function watchForRequests(screening: Screening): Disposable & { readonly signal: AbortSignal } {
  const found = new AbortController();
  const look = (): void => {
    if (listWaiting(screening).length > 0) found.abort();
  };
  const unlisten = screening.run.projector.listen(({ type }) => {
    if (type === "RecipientRequested") look();
  });
  look();
  return { signal: found.signal, [Symbol.dispose]: unlisten };
}

/**
 * Time to wait after the opening of the sending window, in ms: this machine's clock may be slightly ahead of the log's,
 * and no event may be recorded before the opening.
 */
export const OPENING_MARGIN_MS = 1_000;

/** Screens all sources once. Recipients whose sending window is closed are postponed. */
async function screenSources(screening: Screening): Promise<RunEnd | undefined> {
  const { run, retry, closedZones, asked, served } = screening;
  const { metadata, lease, rules } = run;
  closedZones.clear();
  asked.clear();
  served.clear();
  // Opt-outs that a restore lost, and new ones in the inbox, must be recorded before the first recipient is judged.
  await recordKeptOptOuts(run);
  await readNewMessages(run, retry);
  await eraseLeftClicks({ ...run, findLinkKeys: rules.findLinkKeys }, { metadata, lease });
  const end = await screenRequested(screening);
  if (end !== undefined || run.projector.state("run").current?.recipients !== undefined) return end ?? stopReason(run);
  for (const source of run.sources) {
    const ended = await screenSource(screening, source);
    if (ended !== undefined) return ended;
  }
  return (await screenRequested(screening)) ?? stopReason(run);
}

/** Returns the recipients that callers requested and that had no turn in this pass, the earliest first. */
function listWaiting({ run, asked }: Screening): readonly Recipient[] {
  const { current } = run.projector.state("run");
  return current?.requested.filter((requested) => !asked.has(requested)) ?? [];
}

/** Screens the recipients that callers requested, until none waits for their turn. */
async function screenRequested(screening: Screening): Promise<RunEnd | undefined> {
  const { asked, served, isSourceUnfinished } = screening;
  for (let waiting = listWaiting(screening); waiting.length > 0; waiting = listWaiting(screening)) {
    const recipients = waiting.slice(0, LOOKUP_BATCH);
    for (const recipient of recipients) {
      asked.add(recipient);
      served.add(toRequestKey(recipient));
    }
    const entries = recipients.map((recipient) => ({ recipient }));
    const end = await screenBatch(screening, REQUESTED, entries);
    if (end !== undefined) return end;
  }
  // Requests whose recipients were postponed stay in the log, so the present source need not be read again for them.
  screening.isSourceUnfinished = isSourceUnfinished;
  return undefined;
}

const REQUESTED: TurnSource = { name: "requested" };

/** True if the recipient has already had a turn in this run because a caller requested them. */
function wasServed({ served }: Screening, source: TurnSource, { id, username }: Recipient): boolean {
  if (source === REQUESTED) return false;
  const names = [...(id === undefined ? [] : [{ id }]), ...(username === undefined ? [] : [{ username }])];
  return names.some((name) => served.has(toRequestKey(name)));
}

async function screenSource(screening: Screening, source: Source): Promise<RunEnd | undefined> {
  const { run, finishPage } = screening;
  // The network charges for reading the source, so it is not read once the run must end.
  const endIfPaid = (): RunEnd | undefined => (SOURCE_KINDS[source.name].isPaid ? endNow(screening) : undefined);
  if (run.signal.aborted) return stopReason(run);
  if (!isSourceSelected(run, source) || isClosedToRead(screening, source)) return undefined;
  const end = endIfPaid();
  if (end !== undefined) return end;
  screening.isSourceUnfinished = false;
  for await (const { entries, read } of source.batches(screening)) {
    const ended = await screenBatch(screening, source, entries);
    if (ended !== undefined) return ended;
    if (read !== undefined && !screening.isSourceUnfinished) await finishPage(read);
    const endedNow = endIfPaid();
    if (endedNow !== undefined) return endedNow;
    if (isClosedToRead(screening, source)) return undefined;
  }
  return undefined;
}

/** Returns why the run ends now; undefined if it may send another message. */
function endNow({ run, planned }: Screening): RunEnd | undefined {
  return reasonToEnd(outreachState(run), run.rules, quotaNow(run), planned());
}

/**
 * True if the source costs money and the sending window is closed in the quota's time zone: recipients of such a source
 * mostly have no known zone of their own.
 */
function isClosedToRead(screening: Screening, source: Source): boolean {
  return SOURCE_KINDS[source.name].isPaid && isLater(screening, undefined);
}

/** True if the sending window is closed for the recipient. Their turn is then postponed. */
function isLater(screening: Screening, contact: Contact | undefined): boolean {
  const isLate = isClosedFor(screening.run.rules.window, contact, quotaNow(screening.run));
  if (isLate) postpone(screening, contact);
  return isLate;
}

function postpone(screening: Screening, contact: Contact | undefined): void {
  const { run, closedZones } = screening;
  const { window } = run.rules;
  if (window !== undefined) closedZones.add(windowZone(window, contact?.timezone, quotaNow(run)));
  screening.isSourceUnfinished = true;
}

/** Returns the time (ms) at which the sending window first opens for a postponed recipient; undefined without any. */
function nextOpening({ run, closedZones }: Screening): number | undefined {
  const { window } = run.rules;
  if (window === undefined || closedZones.size === 0) return undefined;
  const now = quotaNow(run);
  return Math.min(...[...closedZones].map((zone) => opensAt(window, zone, now)));
}

/**
 * True if the run's limits include the source. The two sources of retried recipients are always read, because each of
 * their recipients is checked.
 */
function isSourceSelected({ projector, rules }: RunContext, { name }: Source): boolean {
  // A list of the network (a source without `isKnown`) has one stored cursor, so only runs of `default` read it.
  if (rules.campaign !== undefined && SOURCE_KINDS[name].isKnown === undefined) return false;
  const wanted = projector.state("run").current?.source;
  return wanted === undefined || [wanted, undefined].includes(namedSource(name));
}

/** True if the run's limits leave this recipient out. */
function isLeftOut(screening: Screening, source: TurnSource, recipient: Recipient, contact: Contact | undefined) {
  const { run } = screening;
  const found = { recipient, contact, source: namedSource(source.name) };
  if (isForRun(run.projector.state("run").current, rulesNow(run), found)) return false;
  screening.isSourceUnfinished = true;
  return true;
}

async function screenBatch(screening: Screening, source: TurnSource, entries: readonly BatchEntry[]) {
  const { run, seen, waitForTurn } = screening;
  const ended = source === REQUESTED ? undefined : await screenRequested(screening);
  if (ended !== undefined) return ended;
  const open = await screenKnown(screening, source, entries);
  for (let at = 0; at < open.length;) {
    if (run.signal.aborted) return stopReason(run);
    const end = endNow(screening);
    if (end !== undefined) return end;
    // The network charges for each look-up, so no more recipients are looked up than may get a message.
    const size = screening.wanted();
    const asked = open
      .slice(at, at + size)
      .filter(({ recipient }) => !wasServed(screening, source, recipient) && !isLater(screening, find(run, recipient)));
    for (const user of await screenUsers(screening, source, asked)) {
      if (run.signal.aborted) return stopReason(run);
      const stopped = (await waitForTurn()) ?? (await screenBefore(screening, source));
      if (stopped !== undefined) return stopped;
      if (wasServed(screening, source, user)) continue;
      const written = await writeUnlessFound(screening, user, source);
      // The run must look the recipient up again when their window opens, possibly on another day.
      if (written === "closed") seen.delete(user.id);
      else if (written !== undefined) return written;
    }
    at += size;
  }
  return stopReason(run);
}

/** Gives a turn to recipients that callers requested during a wait: they come before the source's recipients. */
async function screenBefore(screening: Screening, source: TurnSource): Promise<RunEnd | undefined> {
  if (source === REQUESTED) return undefined;
  while (listWaiting(screening).length > 0) {
    const end = (await screenRequested(screening)) ?? (await screening.waitForTurn());
    if (end !== undefined) return end;
  }
  return undefined;
}

function find(run: RunContext, recipient: Recipient): Contact | undefined {
  return findPerson(run.projector.state("contacts"), recipient);
}

/**
 * Records skips for recipients that log or rules forbid, and drops those that the run leaves out. Returns the others.
 */
async function screenKnown(screening: Screening, source: TurnSource, entries: readonly BatchEntry[]) {
  const { run, seen, ids, skip } = screening;
  const open: BatchEntry[] = [];
  const refused: Refused[] = [];
  const [state, rules] = [outreachState(run), rulesNow(run)];
  for (const { recipient: named, user } of entries) {
    const id = named.id ?? ids.get(toHandleKey(named)) ?? findContact(state.contacts, named)?.id;
    const recipient = { ...named, ...(id === undefined ? {} : { id }) };
    if (user !== undefined) ids.set(toHandleKey(user), user.id);
    const contact = findPerson(state.contacts, recipient);
    // A recipient whose message the network refused in an earlier run gets a turn only with the last source.
    const isHeldBack = source.name !== "last" && contact !== undefined && isTriedLast(contact, run.rules.campaign);
    if (source !== REQUESTED && (seen.has(toRequestKey(recipient)) || isHeldBack)) continue;
    if (isLeftOut(screening, source, recipient, contact)) {
      refused.push({ recipient, verdict: LEFT_OUT });
      continue;
    }
    const verdict = judgeKnown(state, rules, recipient, user, contact);
    const isUnsure = verdict.verdict !== "ask" && source === REQUESTED && id === undefined;
    if (verdict.verdict === "ask" || (isUnsure && needsLookUp(state, rules, verdict, contact)))
      open.push({ recipient, ...(user === undefined ? {} : { user }) });
    else refused.push({ recipient, verdict });
  }
  await skip(refused);
  return open;
}

/** Looks recipients up, and records skips for those whose profile forbids a message. Returns the others' profiles. */
async function screenUsers(screening: Screening, source: TurnSource, open: readonly BatchEntry[]) {
  const { run, seen, ids, retry, skip } = screening;
  const users: SocialUser[] = [];
  const refused: Refused[] = [];
  for (const { entry, user } of await retry(() => lookUpUsers(run, open))) {
    if (user === undefined) {
      seen.add(toRequestKey(entry.recipient));
      refused.push({ recipient: entry.recipient, verdict: { verdict: "skip", reason: "invalid_recipient" } });
      continue;
    }
    // A requested recipient needs an outcome, even if the run has already looked them up for a source.
    if (source === REQUESTED ? users.some(({ id }) => id === user.id) : seen.has(user.id)) continue;
    seen.add(user.id);
    ids.set(toHandleKey(user), user.id);
    if (isLeftOut(screening, source, user, find(run, user))) {
      refused.push({ recipient: { id: user.id, username: user.username }, verdict: LEFT_OUT });
      continue;
    }
    const verdict = judgeUser(outreachState(run), rulesNow(run), user);
    if (verdict.verdict === "write") users.push(user);
    else refused.push({ recipient: { id: user.id, username: user.username }, verdict });
  }
  await skip(refused);
  return users;
}

const LEFT_OUT = { verdict: "pass", reason: "left_out" } as const;

/** Sends a message to a recipient, unless the network shows one of ours that the log lost when it was restored. */
async function writeUnlessFound(screening: Screening, user: SocialUser, source: TurnSource) {
  const { run, retry, skip, write } = screening;
  if (isLater(screening, find(run, user))) return "closed";
  const ours = await findOurs(run, retry, user);
  if (ours === "none") {
    const written = await write(user, namedSource(source.name));
    if (written === "closed") postpone(screening, find(run, user));
    return written;
  }
  if (ours === "unknown") return undefined;
  const found = { message_id: ours.id, sent_at: isoTime(ours.createdAt) };
  const verdict = { verdict: "skip", reason: "already_contacted", found } as const;
  await skip([{ recipient: { id: user.id, username: user.username }, verdict }]);
  return undefined;
}
