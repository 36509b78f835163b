import { countChanges, type Message, type Results } from "./message-outcomes-and-reactions.ts";
import { DAY_CHARACTERS } from "./parse-log-times.ts";

/** Properties of a message by which results can be grouped. */
export interface Grouped {
  /** Index in {@link Results.groups}. */
  readonly group: number;
  /** UTC day of the intent to send the message. */
  readonly day: string;
  /** Numbers of the message's links in {@link Results.links}. */
  readonly links: readonly number[];
}

/** Counts of messages. */
export interface MessageCounts {
  readonly messages: ReturnType<typeof noMessages>;
  /** Counts of the messages whose recipients permit tracking. */
  readonly tracked: ReturnType<typeof noTracked>;
  /** Times from a message to the recipient's first click, in ms. */
  readonly firstClicks: number[];
}

/** Counts of the messages of one group and day that contain the same links. */
export interface MessageSums extends Grouped, MessageCounts {}

export function noMessages() {
  return { attempted: 0, sent: 0, failed: 0, in_doubt: 0, seen: 0, replied: 0, opted_out: 0 };
}

export function noTracked() {
  return { recipients: 0, clicked: 0, clicks: 0, suspected: 0 };
}

/** Adds a message to the counts. */
export function addMessage({ messages, tracked, firstClicks }: MessageCounts, message: Message): void {
  messages.attempted++;
  if (message.outcome !== "open") messages[message.outcome]++;
  if (message.outcome !== "sent") return;
  if (message.seen > 0) messages.seen++;
  if (message.replied > 0) messages.replied++;
  if (message.opted_out > 0) messages.opted_out++;
  if (message.tracked === null) return;
  const { clicks, suspected, first, sent } = message.tracked;
  tracked.recipients++;
  tracked.clicks += clicks.length;
  tracked.suspected += suspected.length;
  if (first === null) return;
  tracked.clicked++;
  firstClicks.push(first - sent);
}

/** Number of messages handled in one step. Other work has its turn after each step, which takes less than a millisecond. */
const STEP_MESSAGES = 256;

interface KnownGroup {
  /** Keys of the group's messages in {@link Results.messages}. */
  readonly numbers: number[];
  /** Value of {@link countChanges}, and number of messages, for which `sums` hold. */
  changes: number;
  size: number;
  sums: readonly MessageSums[];
}

/** The groups of each state from which sums were made, and the number of its messages that are assigned to them. */
const KNOWN = new WeakMap<Results["messages"], { assigned: number; readonly groups: KnownGroup[] }>();

/**
 * Sums up all messages step by step, ordered by group and then by first message. Keeps the sums, so that the next call
 * sums up only the groups that have changed. Leaves out a group that begins between two steps.
 */
export function* sumMessagesByGroup(results: Results): Generator<void, readonly MessageSums[], void> {
  const { messages, groups } = results;
  const [size, groupCount] = [messages.size, groups.length];
  const known = KNOWN.getOrInsertComputed(messages, () => ({ assigned: 0, groups: [] }));
  // Two callers may take turns in this loop, so each step reads the number of assigned messages again.
  while (known.assigned < size) {
    const { group } = messages.get(known.assigned)!;
    const one = (known.groups[group] ??= { numbers: [], changes: 0, size: 0, sums: [] });
    one.numbers.push(known.assigned++);
    if (known.assigned % STEP_MESSAGES === 0) yield;
  }
  const sums: (readonly MessageSums[])[] = [];
  for (const [group, one] of known.groups.slice(0, groupCount).entries()) {
    const changes = countChanges(results, group);
    const count = one.numbers.length;
    if (one.changes !== changes || one.size !== count) {
      one.sums = yield* sumUp(messages, one.numbers.slice(0, count));
      [one.changes, one.size] = [changes, count];
    }
    sums.push(one.sums);
  }
  return sums.flat();
}

function* sumUp(
  messages: Results["messages"],
  numbers: readonly number[],
): Generator<void, readonly MessageSums[], void> {
  const sums = new Map<string, MessageSums>();
  for (const [at, number] of numbers.entries()) {
    const message = messages.get(number)!;
    const { group, links } = message;
    const day = message.at.slice(0, DAY_CHARACTERS);
    const sum = sums.getOrInsertComputed(`${day} ${links.join()}`, () => {
      return { group, day, links, messages: noMessages(), tracked: noTracked(), firstClicks: [] };
    });
    addMessage(sum, message);
    if (at % STEP_MESSAGES === STEP_MESSAGES - 1) yield;
  }
  return [...sums.values()];
}
