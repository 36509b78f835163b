import { CLOCK_SKEW_MS_MAX } from "../../../src/log/log-time-and-clock-skew.ts";
import { dayIn } from "../../../src/outreach/quota-day.ts";
import { createBooks, inherit, violated, type Books } from "./log-summary.ts";
import { campaignOfText, isAnswered } from "./campaign-rules.ts";
import { PAGES_MAX } from "./instance.ts";
import { checkErased } from "./check-erased.ts";
import type { Copy, House } from "./simulated-world.ts";
import { enter } from "./rules.ts";
import { isSendingTime } from "./check-windows-and-run-ends.ts";
import { SHOWN_MS, type Accepted } from "../../harness/in-process/social-network.ts";
import type { Ask } from "./record-appends-and-send-requests.ts";

/**
 * Checks the protocol's rules independently of the code that implements them. Compares the log with the messages that
 * the network accepted; throws a Violation.
 */
export interface Ledger {
  readonly books: Books;
  check(): Promise<void>;
  /**
   * Replaces the log by an older copy, and the summary of its events (`books`) by that of the copy. Returns false if no
   * copy exists.
   */
  replaceLog(by: Copy, isBeside?: boolean): Promise<boolean>;
}

export function createLedger(house: House): Ledger {
  let books = createBooks();
  let position = 0;
  let asksSeen = 0;

  /**
   * Checks the requests to the network that processes made while the log's last event was at most at position `head`.
   */
  const judgeUpTo = (head: number): void => {
    const { asks } = house.witness;
    for (let ask = asks[asksSeen]; ask !== undefined && ask.head <= head; ask = asks[asksSeen]) {
      asksSeen += 1;
      judge(books, ask, house);
    }
  };

  const read = async (): Promise<void> => {
    for (const event of await house.events(position + 1)) {
      judgeUpTo(position);
      enter(books, event, house);
      position = event.position;
    }
    judgeUpTo(position);
  };

  return {
    get books() {
      return books;
    },
    async check() {
      await read();
      if (house.pagesRead > PAGES_MAX) violated("a run reads without end", { cursors: house.network.cursors });
      const [late] = house.witness.lateAsks;
      if (late !== undefined) violated("an opt-out was answered while a message was on its way", late);
      if (house.wrongJoins.length > 0) violated("recipients joined another campaign", { runs: house.wrongJoins });
      if (house.wrongStarts.length > 0) violated("a run of a wrong clock", { runs: house.wrongStarts });
      checkAccepted(books, house);
      await checkErased(house);
    },
    async replaceLog(by, isBeside) {
      await read();
      if (!(await house.replaceLog(by, isBeside))) return false;
      const before = books;
      books = createBooks(await findUnlinked(house));
      position = 0;
      await read();
      inherit(books, before, house);
      return true;
    },
  };
}

/**
 * Finds suppressions by handle alone that this log cannot assign to a person: no event links the handle to an id, and
 * the person has another handle now. Only a lost log had the linking event.
 */
async function findUnlinked({ events, witness, network }: House): Promise<ReadonlySet<number>> {
  const named = (await events(1)).map(witness.asAppended).flatMap(({ type, position, data }) => {
    const { id, username } = ("recipient" in data ? data.recipient : undefined) ?? {};
    return username === undefined ? [] : [{ type, position, id, handle: username.toLowerCase() }];
  });
  const linked = new Set(named.flatMap(({ id, handle }) => (id === undefined ? [] : [handle])));
  const unlinked = named.filter(({ type, position, handle }) => {
    const holder = network.people.get(witness.about(position) ?? "");
    return type === "RecipientSuppressed" && !linked.has(handle) && holder?.username.toLowerCase() !== handle;
  });
  return new Set(unlinked.map(({ position }) => position));
}

/**
 * Maximum time in ms between the grant of a lease, which tells a process how wrong its clock is, and the request that
 * follows.
 */
const LATE_MS = 30_000;

/** Checks that a process was allowed to ask the network to send a message, by what the log contained at that time. */
function judge(books: Books, ask: Ask, house: House): void {
  const { latest, suppressed, stopped, askedAfterStop, linked } = books;
  const { witness, setting } = house;
  const attempt = latest.get(ask.recipientId) ?? violated("a request without an intent", ask);
  attempt.asks.push(ask);
  if (attempt.settledAt !== undefined) violated("a request for an attempt that is settled", ask);
  if (stopped.has(attempt.runId)) {
    if (askedAfterStop.has(attempt.runId)) violated("a second request after a stop", ask);
    askedAfterStop.add(attempt.runId);
  }
  if (ask.knewSuppressed) violated("a request for a recipient known to be suppressed", ask);
  const suppressedAt = suppressed.get(ask.recipientId);
  if (suppressedAt !== undefined && witness.appendedAt(suppressedAt) < ask.at) {
    violated("a request after a suppression", ask);
  }
  // Once the page to opt out has answered, no message may be requested, even if a restored log lacks the suppression.
  if ((witness.answeredOptOuts.get(ask.recipientId) ?? Infinity) < ask.at) violated("a request after an opt-out", ask);
  const heldAt = books.held.get(ask.recipientId);
  if (heldAt !== undefined && witness.appendedAt(heldAt) < ask.at)
    violated("a request for a recipient who is held", ask);
  const isBefore = books.answers.findLast(({ position }) => witness.appendedAt(position) < ask.at)?.position ?? 0;
  if (isAnswered(books, attempt, isBefore + 1)) violated("a request for a follow-up after a reply", ask);
  const isLinkedBefore = linked !== undefined && witness.appendedAt(linked.position) < ask.at;
  if (isLinkedBefore && linked.id !== attempt.accountId) violated("a request by another account", { ...ask, linked });
  if (!ask.isTimeKnown) return;
  if (dayIn(attempt.timezone, ask.ownTime) !== attempt.day) violated("a request on another day", ask);
  for (const at of [ask.ownTime, ask.clock]) {
    if (!isSendingTime(house, books, attempt, at)) violated("a request outside of the window", ask);
  }
  if (!setting.isOwned && Math.abs(ask.skewMs) > CLOCK_SKEW_MS_MAX + LATE_MS)
    violated("a request by a wrong clock", ask);
}

/**
 * Checks that no recipient got a second message, whichever log was in use. A message does not count if an operator
 * allowed another one after it.
 */
function checkAccepted(books: Books, { network, replaced }: House): void {
  const { found } = books;
  const excused = excusedIn(books);
  const keyOf = ({ recipientId, text }: Accepted): string => `${recipientId} ${campaignOfText(text)}`;
  for (const [key, messages] of Map.groupBy(network.accepted, keyOf)) {
    const [recipientId = ""] = key.split(" ");
    // True if a message was sent under a lost log and the network no longer showed it when the next one was decided. No
    // log could then know of it.
    const isUnseen = ({ createdAt }: Accepted, next: Accepted | undefined): boolean =>
      next !== undefined &&
      next.createdAt - createdAt > SHOWN_MS &&
      replaced.some(({ at }) => at >= createdAt && at <= next.createdAt);
    const seen = messages.filter(
      (message, at) => found.get(recipientId) === message.id || !isUnseen(message, messages[at + 1]),
    );
    if (seen.filter(({ id }) => !excused.has(id)).length > 1) violated("a message too many", { recipientId, messages });
  }
}

/**
 * Returns the ids of messages that arrived although their attempts are recorded as not delivered and an operator
 * allowed another message (`excused`).
 */
function excusedIn({ attempts, lostAsks, excused }: Books): ReadonlySet<string> {
  const asks = [...excused].flatMap((id) => (attempts.get(id) ?? lostAsks.get(id))?.asks ?? []);
  return new Set(asks.flatMap(({ took }) => took?.accepted?.id ?? []));
}
