import type { Recipient, Usage } from "../../events/outreach.ts";
import { outreachByCampaign } from "../../projections/contact-outreach-by-campaign.ts";
import { findContact, findPerson } from "../../projections/contact-identity.ts";
import type { Contact } from "../../projections/contact-state.ts";
import { eraseClicks, findRevokedLinks } from "../recipients/record-consent.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import { handle, record, type AppendDecision } from "../log/decide-and-append.ts";
import { SocialError, type InboxMessage } from "../networks/network.ts";
import { guardCursors } from "./sources/paged-source.ts";
import { outreachState, RUN_ATTEMPTS_MAX, type RetryPolicy, type RunContext, type ReplyRules } from "./run-context.ts";
import { createDecision, createNaming } from "../recipients/suppress.ts";
import { isSuppressed, type OutreachRules, type OutreachState } from "./decide.ts";

/**
 * Number of messages on the first, second and further pages read of the inbox. The first page is small, because usually
 * few messages are new and the network charges for each one read.
 */
const PAGE_SIZES = [10, 25, 100];

/**
 * Length of the time before the newest message, in ms, of which the next reading reads all messages again, because the
 * network may show a message late, behind newer ones.
 */
const LATE_MS = 10 * 60_000;

/** A run assumes that the network's clock differs from the log's by at most this time, in ms. */
const CLOCK_SKEW_MS = 60 * 60_000;

/**
 * A run, or the follower of the network's signals, that reads the inbox. `usage`: what the reading cost; absent in a
 * run, which records its own cost.
 */
interface InboxReader extends Omit<RunContext, "runId" | "accountId" | "pause"> {
  readonly runId: string | undefined;
  readonly usage?: () => Usage;
}

/**
 * Reads the inbox messages since the last reading: suppresses senders who opt out, and records who wrote. Appends the
 * result of each page before the next is read, then that the reading ended. Throws the network's SocialError.
 */
export async function readNewMessages(run: InboxReader, retry: RetryPolicy): Promise<void> {
  const { begun, newest_id } = run.projector.state("inbox");
  const isReadBefore = ({ id }: InboxMessage) => newest_id !== null && BigInt(id) <= BigInt(newest_id);
  const isEnd = begun ? isReadBefore : await isTooOld(run);
  let newest: string | undefined;
  let lateFrom: number | undefined;
  let messages = 0;
  let cursor: string | undefined;
  const follow = guardCursors(cursor);
  // If the run must end, the remaining pages of the inbox are not read.
  for (let page = 0; !run.signal.aborted; page++) {
    const read = await readPage(run, retry, PAGE_SIZES[page] ?? Math.max(...PAGE_SIZES), cursor);
    messages += read.messages.length;
    await recordMessages(run, read.messages);
    const latest = read.messages[0]?.createdAt;
    // The next reading reads again from LATE_MS before the newest message, because the network may show messages late.
    // If that message's time is after this machine's clock, the clock's time counts in its place.
    if (latest !== undefined) lateFrom ??= Math.min(run.clock(), latest) - LATE_MS;
    newest ??= read.messages.find(({ createdAt }) => createdAt <= (lateFrom ?? 0))?.id;
    const isEnded = read.messages.some(isEnd);
    const next = follow(read.messages.length, read.next);
    const isCut = !isEnded && next === undefined && read.next !== undefined;
    // The network's cursors repeat, or lead to empty pages only. The run must not continue: an unread message may be an
    // opt-out.
    if (isCut && messages > 0) throw new SocialError("unavailable", "the pages of messages lead nowhere");
    if (isEnded || next === undefined) {
      // Only the first reading stores where it stopped: from that cursor on, the source `inbound` reads the older
      // messages. Later readings keep the stored cursor, because a run may have moved it.
      const left = (begun ? run.projector.state("inbox").backlog : next) ?? undefined;
      const upTo = newest ?? (begun || next === undefined ? undefined : read.messages.at(-1)?.id);
      return await recordRead(run, messages, { newest_id: upTo, backlog: left });
    }
    cursor = next;
  }
}

/**
 * Returns a function that reads one page of older inbox messages, with about as many messages as recipients are wanted.
 * It returns false if no older ones are left, and throws the network's SocialError.
 */
export function openOlderMessages(run: InboxReader, retry: RetryPolicy) {
  let isRestarted = false;
  let follow = guardCursors(run.projector.state("inbox").backlog ?? undefined);

  /**
   * Reads a page of inbox messages from `cursor`. If the network rejects the cursor, starts once at the newest page
   * instead; undefined if it then rejects a later cursor too.
   */
  const read = async (size: number, cursor: string) => {
    try {
      return await readPage(run, retry, size, cursor);
    } catch (fault) {
      if (!(fault instanceof SocialError) || fault.kind !== "rejected") throw fault;
      // The cursor was refused although the reading started again and got it just now, so age is not the cause. The
      // network charges for each new start, so there is no further one.
      if (isRestarted) return undefined;
      isRestarted = true;
      follow = guardCursors(undefined);
      // The network rejects old cursors, so the newest page is read instead. Messages that are read a second time add
      // no events.
      return readPage(run, retry, size, undefined);
    }
  };

  return async (wanted: number): Promise<boolean> => {
    const { backlog } = run.projector.state("inbox");
    if (backlog === null) return false;
    const size = Math.min(Math.max(...PAGE_SIZES), Math.max(Math.min(...PAGE_SIZES), wanted));
    const page = await read(size, backlog);
    const messages = page?.messages ?? [];
    await recordMessages(run, messages);
    const next = follow(messages.length, page?.next);
    await recordRead(run, messages.length, { backlog: next });
    return next !== undefined;
  };
}

function readPage(
  { network, credentials }: InboxReader,
  retry: RetryPolicy,
  limit: number,
  cursor: string | undefined,
) {
  const page = { limit, ...omitUndefined({ cursor }) };
  return retry(() => credentials.use((token) => network.inbox(token, page)));
}

/**
 * Returns a test for messages that end the very first reading of the inbox: sent before our first message, so no
 * replies. After a restore no message ends it, because the log may lack messages of ours.
 */
async function isTooOld({ eventLog, projector }: InboxReader): Promise<(message: InboxMessage) => boolean> {
  if (projector.state("restores").last !== null) return () => false;
  for await (const { time } of eventLog.store.read({ types: ["DirectMessageAttempted"], limit: 1 })) {
    const earliest = Date.parse(time) - CLOCK_SKEW_MS;
    return ({ createdAt }) => createdAt < earliest;
  }
  return () => true;
}

/**
 * Appends what inbox messages show and the log lacks: first messages, replies, opt-outs, possible opt-outs, and
 * objections to tracking.
 */
async function recordMessages(run: InboxReader, messages: readonly InboxMessage[]): Promise<void> {
  const { metadata, lease } = run;
  const decide = () => decideReceived(outreachState(run), run, messages);
  await handle(run, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
}

/**
 * Decides which events follow from inbox messages (newest first): who wrote or replied, and who opts out. `found`: how
 * the messages arrived.
 */
export function decideReceived(
  state: OutreachState,
  { rules, readWish, isTrackingOptOut }: ReplyRules,
  messages: readonly InboxMessage[],
  found: { readonly via?: "stream" } = {},
): AppendDecision<never> {
  const own = state.account.user?.id;
  const noted = new Set<string>();
  const [suppress, nameSuppressed] = [createDecision(rules.hashes), createNaming(rules.hashes)];
  const once = (what: string): boolean => noted.size < noted.add(what).size;
  // Events are in the order in which the messages were written.
  const events = messages.toReversed().flatMap((message): NewEvent[] => {
    const { id: message_id, senderId, senderUsername: username, createdAt, text } = message;
    if (senderId === own) return [];
    const recipient = { id: senderId, ...omitUndefined({ username }) };
    const newEvents: NewEvent[] = [];
    // A message to a group is no consent, since it was not written to us. An opt-out counts even there.
    const side = message.inGroup === true ? undefined : isNews(findContact(state.contacts, recipient), message);
    if (side !== undefined && once(`${side} ${senderId}`)) {
      const data = { recipient, message_id, received_at: isoTime(createdAt), ...found };
      newEvents.push({ type: "DirectMessageReceived", data });
    }
    // An opt-out is recorded even for a sender who is suppressed by the hash of a name, because the sender's handle may
    // have changed by the next message.
    const wish = readWish(text);
    if (wish === "stop")
      newEvents.push(...suppress(state.contacts, [{ recipient, reason: "opt_out", message_id, ...found }]));
    else newEvents.push(...nameSuppressed(state.contacts, [recipient]));
    if (wish === "doubt" && isUndecided(state, rules, recipient, createdAt) && once(`hold ${senderId}`)) {
      newEvents.push({
        type: "RecipientHeld",
        data: { recipient, message_id, received_at: isoTime(createdAt), ...found },
      });
    }
    if (isTrackingOptOut(text) && isTrackedAt(state, recipient, createdAt) && once(`tracking ${senderId}`)) {
      newEvents.push(...denyTracking(state, rules, recipient, message));
    }
    return newEvents;
  });
  return { events };
}

/**
 * True if a possible opt-out is to be held for an operator: the sender is not suppressed, and was not held because of
 * this message or a later one. The network may show a message twice.
 */
export function isUndecided(
  state: OutreachState,
  rules: OutreachRules,
  recipient: Recipient,
  createdAt: number,
): boolean {
  const { held_at } = findPerson(state.contacts, recipient) ?? {};
  if (held_at !== undefined && createdAt <= Date.parse(held_at)) return false;
  return !isSuppressed(state, rules, recipient);
}

/**
 * True if an objection to tracking in this message must be recorded: tracking is not denied yet, and no consent is
 * newer than the message. The network may show a message twice.
 */
function isTrackedAt({ contacts }: OutreachState, recipient: Recipient, createdAt: number): boolean {
  const { status, at } = findPerson(contacts, recipient)?.tracking ?? { status: "unknown" };
  if (status === "denied") return false;
  return status === "unknown" || at === undefined || Date.parse(at) <= createdAt;
}

function denyTracking(
  { contacts }: OutreachState,
  { findLinkKeys }: RunContext["rules"],
  recipient: Recipient,
  { id: message_id, createdAt }: InboxMessage,
): readonly NewEvent[] {
  const record = { tracking: "denied", tracking_at: isoTime(createdAt), tracking_source: "message" } as const;
  const denied: NewEvent = { type: "ConsentRecorded", data: { recipient, ...record, message_id } };
  return [denied, ...eraseClicks(findLinkKeys(findRevokedLinks(contacts, recipient, record)))];
}

/**
 * Returns what is new in a message: the sender wrote to us for the first time (`first`), or replied to ours (`reply`).
 * Undefined if the log knows it already.
 */
function isNews(contact: Contact | undefined, { id, createdAt }: InboxMessage): "first" | "reply" | undefined {
  // Compares ids, not times: the clocks of the network and of the log may differ, so a sender's first message could
  // seem to answer ours.
  if (contact?.received_id === id) return undefined;
  const answered = (contact === undefined ? [] : outreachByCampaign(contact)).filter(
    ([, { attempted_at: at }]) => at !== undefined && createdAt >= Date.parse(at),
  );
  if (answered.length > 0) return answered.every(([, { replied }]) => replied) ? undefined : "reply";
  return contact?.received === true ? undefined : "first";
}

/**
 * Appends that the inbox was read. `backlog`: cursor of the older messages that are still unread; undefined if there
 * are none.
 */
async function recordRead(
  run: InboxReader,
  messages: number,
  cursors: { readonly newest_id?: string | undefined; readonly backlog: string | undefined },
): Promise<void> {
  const data = { messages, ...omitUndefined({ run_id: run.runId, usage: run.usage?.(), ...cursors }) };
  const { metadata, lease } = run;
  await record(run, STREAMS.outreach, [{ type: "InboxRead", data }], { metadata, lease });
}
