import type { Recorded } from "../../../events/event-types-and-codec.ts";
import type { KnownRecipient, RunEnd } from "../../../events/outreach.ts";
import { dayIn } from "../../../src/outreach/quota-day.ts";
import { placesOn, violated, type Attempt, type Books } from "./log-summary.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { checkCampaign, noteAnswer } from "./campaign-rules.ts";
import type { House } from "./simulated-world.ts";
import { PAGES_MAX } from "./instance.ts";
import { CONSENT_FOR, indexOf } from "./initial-state.ts";
import { checkEnd, checkOpening, checkSelection, isSendingTime, mayStart } from "./check-windows-and-run-ends.ts";

/**
 * Time in ms for which a lease lasts after its holder's last renewal. A process may append a decision that it made this
 * long ago.
 */
const LEASE_MS = 30_000;

/**
 * For this time in ms after a change of QUOTA_TIMEZONE, the daily limit counts the messages of the last 24 hours
 * instead of those of the calendar day.
 */
const WINDOW_MS = 24 * 3_600_000;

/** Adds an event to the summary that the rule checks use. Throws a Violation if the event is illegal. */
export function enter(books: Books, event: Recorded, house: House): void {
  take(books, event, house);
  bringTogether(books, event, house);
}

/** Marks a recipient as suppressed once the log links their id to a handle whose hash is on a suppression list. */
function bringTogether(books: Books, { type, data, position }: Recorded, { hashed }: House): void {
  if (type === "RecipientSuppressed" && data.recipient === undefined) {
    for (const hash of data.hashes ?? []) {
      const { id, username } = hashed.get(hash) ?? {};
      if (id !== undefined && !books.suppressed.has(id)) books.suppressed.set(id, position);
      if (username !== undefined) books.hashedHandles.add(username.toLowerCase());
    }
  } else if ("recipient" in data && data.recipient?.id !== undefined && data.recipient.username !== undefined) {
    books.handles.set(data.recipient.id, data.recipient.username.toLowerCase());
  } else return;
  for (const [id, handle] of books.handles) {
    if (books.hashedHandles.has(handle) && !books.suppressed.has(id)) books.suppressed.set(id, position);
  }
}

function take(books: Books, event: Recorded, house: House): void {
  const about = house.witness.about(event.position) ?? "";
  if (ANSWERS.includes(event.type)) books.openRun?.waiting.delete(about);
  switch (event.type) {
    case "AccountAuthorized":
      books.linked = { id: event.data.user.id, position: event.position };
      return;
    case "RunStarted":
      return begin(books, event, house);
    case "RunStopRequested":
      return stop(books, event.data.run_id);
    case "RecipientRequested":
      return request(books, event.data.run_id, about);
    case "RecipientNotReached":
      books.requests.notReached += 1;
      return;
    case "RunFinished":
      checkReason(books, event.data.reason, house);
      checkEnd(books, event, house);
      books.ends.push(event.data.reason);
      return end(books, event.data, house);
    case "RunPaused":
      if (event.data.reason === "window_closed") books.waits += 1;
      return;
    case "RunRefused":
      return checkRefusal(event, house);
    case "RunAbandoned":
    case "DryRunFinished":
      return end(books, event.data, house);
    case "DirectMessageAttempted":
      return intend(books, event, house);
    case "DirectMessageSent":
      return settleSent(books, event, house);
    case "DirectMessageFailed":
      return settleFailed(books, event);
    case "DirectMessageInDoubt":
      return doubt(unsettled(books, event.data.attempt_id, event.position));
    case "DirectMessageSkipped":
      return skip(books, event, about, house);
    case "RecipientAdded":
      return list(books, about);
    case "RecipientHeld":
      noteAnswer(books, about, event);
      if (!books.suppressed.has(about)) books.held.set(about, event.position);
      return;
    case "RecipientReleased":
      books.held.delete(about);
      return;
    case "RecipientSuppressed":
      books.held.delete(about);
      if (event.data.recipient === undefined) return;
      if (books.suppressed.has(about) || books.unlinked.has(event.position)) return;
      books.suppressed.set(about, event.position);
      return;
    case "DirectMessageReceived":
      noteAnswer(books, about, event);
      books.wrote.add(about);
      return;
    case "ConsentRecorded":
      if (event.data.basis === "none") books.withdrawn.add(`${about} ${event.data.consent_for}`);
      // After a record of consent, the service judges the recipient again, so it may record another skip for lack of
      // consent.
      return allowSkips(books, (told) => told.startsWith(`${about} `) && told.endsWith(" no_consent"));
    case "CampaignEnded":
      books.endedCampaigns.set(event.data.name, house.witness.appendedAt(event.position));
      return;
    case "InboxRead":
      if (books.backlogBefore > -Infinity) return;
      books.backlogBefore = event.data.backlog === undefined ? 0 : house.witness.appendedAt(event.position);
      return;
    case "PersonForgotten":
      for (const id of house.forgotten) {
        const isMeant = RULES.hashes({ id }).some((mark) => event.data.hashes.includes(mark));
        if (isMeant && !books.suppressed.has(id)) books.suppressed.set(id, event.position);
      }
      return;
    case "RecipientRetryAllowed":
      return allowRetry(books, findRetried(books, about, event.data.campaign));
    default:
  }
}

function begin(books: Books, { data, time, position }: Recorded<"RunStarted">, house: House): void {
  const { run_id: id, dry_run: dry, rules: _rules, ...selection } = data;
  if (books.openRun !== undefined) violated("two runs at once", { open: books.openRun, id });
  const requests = { requested: new Set<string>(), waiting: new Set<string>() };
  const endedAt = books.endedCampaigns.get(data.campaign ?? "default") ?? Infinity;
  if (house.witness.appendedAt(position) - endedAt > LEASE_MS) violated("a run of an ended campaign", { id });
  books.openRun = { id, dry, at: house.witness.appendedAt(position), selection, ...requests };
  if (!dry && !mayStart(house, Date.parse(time)) && !wasClockMoved(house, position)) {
    violated("a run started outside of the window", { id, time });
  }
}

/** Types of events that give a requested recipient an outcome. */
const ANSWERS: readonly string[] = [
  "DirectMessageAttempted",
  "DirectMessageSkipped",
  "DryRunRecipientListed",
  "RecipientNotReached",
];

/** Notes a requested recipient, for which the run has to record an outcome. */
function request({ openRun, requests }: Books, id: string, recipientId: string): void {
  if (openRun?.id !== id) violated("a request of a run that was not open", { open: openRun?.id, id });
  openRun.requested.add(recipientId);
  openRun.waiting.add(recipientId);
  requests.made += 1;
}

function checkRefusal({ data, time, position }: Recorded<"RunRefused">, house: House): void {
  if (data.reason !== "window_closed") return;
  checkOpening(house, { time, position, until: data.until, zones: house.timezones });
}

function stop({ openRun, stopped }: Books, id: string): void {
  if (openRun?.id !== id) violated("a stop of a run that was not open", { open: openRun, id });
  if (stopped.has(id)) violated("a run was asked to stop twice", { id });
  stopped.add(id);
}

/**
 * Number of people who must refuse messages before the account may count as restricted. With fewer, only those people
 * are concerned.
 */
const REFUSED_MIN = 3;

/** Checks that neither one failed request nor the refusals of one or two people ended a run. */
function checkReason({ openRun }: Books, reason: RunEnd, { troubles, refused }: House): void {
  const begun = openRun?.at ?? 0;
  const met = troubles.filter(({ at }) => at >= begun);
  if (reason === "network_unavailable" && met.length < 2) violated("one fault ended a run", { reason, met });
  const isAccount = met.some(({ what }) => what === "stopped") || refused.size >= REFUSED_MIN;
  if (reason === "sender_restricted" && !isAccount) violated("few people ended a run", { refused: [...refused] });
}

function end(books: Books, { run_id: id, reason }: { run_id: string; reason?: RunEnd }, house: House): void {
  const isFault = reason === "fault";
  if (books.openRun?.id !== id) violated("a run ended that was not open", { open: books.openRun, id });
  if (house.pagesRead > PAGES_MAX) violated("a run reads without end", { cursors: house.network.cursors });
  house.pagesRead = 0;
  for (const recipientId of books.openRun.waiting) {
    // A requested recipient may lack an outcome if the person was erased. If any handle has passed to another person,
    // the outcome may name that person, so the model then checks no recipient.
    if (house.forgotten.has(recipientId) || house.everHeirs.size > 0) continue;
    violated("a requested recipient without an outcome", { id, recipientId });
  }
  for (const { runId, state } of books.attempts.values()) {
    // If the log refuses the outcome of an attempt, the run may end with a fault and leave the attempt open. The next
    // run or start settles it.
    if (runId === id && state === "open" && !isFault) violated("a run ended that left an attempt unexplained", { id });
  }
  books.openRun = undefined;
}

function intend(books: Books, event: Recorded<"DirectMessageAttempted">, house: House): void {
  const { attempt_id: id, run_id: runId, account_id: accountId, recipient, day, timezone = "" } = event.data;
  const { position } = event;
  const about = { position, recipientId: recipient.id };
  if (books.openRun?.id !== runId || books.openRun.dry) violated("an intent outside of its run", about);
  if (books.stopped.has(runId)) violated("an intent of a run that was asked to stop", about);
  const { campaign = "default" } = event.data;
  if ((books.openRun.selection.campaign ?? "default") !== campaign) violated("an intent of another campaign", about);
  checkPerson(books, { ...recipient, campaign }, about, house);
  const optedOutAt = house.witness.optedOutBefore(runId).get(recipient.id) ?? -Infinity;
  if (optedOutAt > books.backlogBefore) violated("an opt-out was there before the run", about);
  const time = Date.parse(event.time);
  const isThatDay = day === dayIn(timezone, time) || day === dayIn(timezone, time - LEASE_MS);
  if (!isThatDay && !wasClockMoved(house, position)) violated("not that day", about);
  const fresh = { state: "open", doubted: false, mayRepeat: false } as const;
  const attempt: Attempt = {
    id,
    recipientId: recipient.id,
    campaign,
    runId,
    accountId,
    day,
    timezone,
    position,
    time,
    ...fresh,
    asks: [],
  };
  const isTime = [time, time - LEASE_MS].some((at) => isSendingTime(house, books, attempt, at));
  if (!isTime && !wasClockMoved(house, position)) violated("an intent outside of the window", about);
  checkSelection(books, event, house);
  checkCampaign(books, attempt, house, wasClockMoved(house, position));
  takePlace(books, attempt, house);
  books.attempts.set(id, attempt);
  books.latest.set(recipient.id, attempt);
  books.ofCampaign.set(`${recipient.id} ${campaign}`, attempt);
}

/**
 * True if the log's clock was moved so shortly before the event that the event's writer may not have known. Such a
 * writer makes no request to the network.
 */
function wasClockMoved({ witness, clockMoves, setting }: House, position: number): boolean {
  const at = witness.appendedAt(position);
  return !setting.isOwned && clockMoves.some((movedAt) => movedAt <= at && at - movedAt <= LEASE_MS);
}

/**
 * Counts an attempt toward the day's quota and checks the daily limit. In the day after a change of QUOTA_TIMEZONE, the
 * limit applies to the last 24 hours instead.
 */
function takePlace(books: Books, { day, timezone, time, recipientId }: Attempt, { setting }: House): void {
  const before = [...books.attempts.values()];
  const last = before.at(-1);
  if (last !== undefined && last.timezone !== timezone) books.changedAt = time;
  books.places.set(day, (books.places.get(day) ?? 0) + 1);
  const isAfterChange = time < books.changedAt + WINDOW_MS;
  const taking = [...before.filter(({ isFreed }) => isFreed !== true), ...books.lost];
  const ofWindow = taking.filter((one) => one.time > time - WINDOW_MS && one.time <= time).length + 1;
  const taken = isAfterChange ? ofWindow : placesOn(books, { day, timezone });
  if (taken > setting.dailyLimit) violated("a place too many", { recipientId, day, isAfterChange, taken });
}

/** Checks that the recipient of an intent may be written to. */
function checkPerson(
  books: Books,
  { id, username, campaign }: KnownRecipient & { readonly campaign: string },
  about: object,
  house: House,
): void {
  const kind = house.people[indexOf(id)];
  if (kind === "closed" || kind === "protected" || kind === "unknown") violated("an intent in vain", about);
  const isAsked = !house.setting.followers;
  const isOther = kind === "no_consent" || (kind === "for_one" && campaign !== CONSENT_FOR);
  if (isAsked && isOther && !books.wrote.has(id)) violated("an intent without consent", about);
  if (books.withdrawn.has(`${id} ${campaign}`)) violated("an intent after a withdrawal by name", about);
  if (books.suppressed.has(id)) violated("an intent after a suppression", about);
  if (books.held.has(id)) violated("an intent for a recipient who is held", about);
  if (books.hashedHandles.has(username.toLowerCase()))
    violated("an intent for a handle that is suppressed by hash", about);
  const before = books.ofCampaign.get(`${id} ${campaign}`);
  if (before !== undefined && !before.mayRepeat)
    violated("an intent for a recipient attempted before", { ...about, before });
}

function unsettled({ attempts }: Books, id: string, at: number): Attempt {
  const attempt = attempts.get(id) ?? violated("an outcome without an intent", { id, at });
  if (attempt.settledAt !== undefined) violated("two outcomes of one attempt", { id, at });
  return attempt;
}

function doubt(attempt: Attempt): void {
  if (attempt.state === "in_doubt") violated("in doubt twice", attempt);
  attempt.state = "in_doubt";
  attempt.doubted = true;
}

function settleSent(books: Books, { data, position }: Recorded<"DirectMessageSent">, { network }: House): void {
  const attempt = unsettled(books, data.attempt_id, position);
  attempt.state = "sent";
  attempt.settledAt = position;
  books.counts.sent += 1;
  const { message_id = "" } = data;
  const message = network.accepted.find(({ id }) => id === message_id);
  if (message?.recipientId !== attempt.recipientId) violated("sent, but the network has no such message", data);
  if (books.messageIds.has(message_id)) violated("one message sent twice", data);
  books.messageIds.add(message_id);
}

function settleFailed(books: Books, { data, position }: Recorded<"DirectMessageFailed">): void {
  const attempt = unsettled(books, data.attempt_id, position);
  attempt.state = "failed";
  attempt.reason = data.reason;
  attempt.settledAt = position;
  attempt.mayRepeat = data.retry;
  if (data.detail.startsWith("the sending window closed")) books.late += 1;
  books.counts.failed += 1;
  const isCertain = data.reason !== "not_delivered";
  if (data.frees_quota !== isCertain) violated("a place given back wrongly", data);
  if (data.retry && !isCertain) violated("to be sent again unasked", data);
  if (!data.frees_quota) return;
  attempt.isFreed = true;
  books.places.set(attempt.day, (books.places.get(attempt.day) ?? 0) - 1);
}

function skip(
  { skips, counts, latest, found, openRun, wrote }: Books,
  { data, position }: Recorded<"DirectMessageSkipped">,
  recipientId: string,
  house: House,
): void {
  const { forgotten, network } = house;
  // The key says if the event names an id or a handle alone. If no event links the two, they count as two people, and
  // each may get a skip.
  const told = `${recipientId} ${data.campaign ?? "default"} ${data.recipient.id === undefined ? "handle" : "id"} ${data.reason}`;
  // A skip may be recorded a second time for an erased person, because nothing is kept about them, and for a recipient
  // that a caller requested.
  if (skips.has(told) && !forgotten.has(recipientId) && openRun?.requested.has(recipientId) !== true)
    violated("a skip told twice", { told, position });
  skips.add(told);
  counts.skipped += 1;
  const isLeftOut = openRun?.selection.basis === "opt_in" && house.people[indexOf(recipientId)] === "no_consent";
  if (isLeftOut && !wrote.has(recipientId)) violated("a skip of a recipient who was left out", { told, position });
  const isRequested = openRun?.requested.has(recipientId) === true;
  const isMetAgain =
    !isRequested && data.reason === "already_contacted" && latest.get(recipientId)?.runId === data.run_id;
  if (isMetAgain) violated("met twice", { told, position });
  if (data.found === undefined) return;
  const ours = network.accepted.find(({ id }) => id === data.found?.message_id);
  if (ours?.recipientId !== recipientId) violated("found, but the network has no such message", data);
  found.set(recipientId, ours.id);
}

/**
 * Marks a recipient as imported. An import makes the service judge them again, so their skips may be recorded again.
 */
function list({ skips, listed }: Books, recipientId: string): void {
  listed.add(recipientId);
  allowSkips({ skips }, (told) => told.startsWith(`${recipientId} `));
}

function allowSkips({ skips }: Pick<Books, "skips">, isMeant: (told: string) => boolean): void {
  for (const told of skips) if (isMeant(told)) skips.delete(told);
}

/**
 * Returns the attempt that an operator's permission to retry applies to: the newest one in the named campaign, or the
 * newest of all if none is named.
 */
function findRetried({ latest, ofCampaign }: Books, about: string, campaign?: string): Attempt | undefined {
  return campaign === undefined ? latest.get(about) : ofCampaign.get(`${about} ${campaign}`);
}

/**
 * Allows another message if the attempt failed. For any other attempt, the operator's permission comes too late and has
 * no effect.
 */
function allowRetry({ excused }: Books, attempt: Attempt | undefined): void {
  if (attempt?.state !== "failed" || attempt.mayRepeat) return;
  attempt.mayRepeat = true;
  if (attempt.reason === "not_delivered") excused.add(attempt.id);
}
