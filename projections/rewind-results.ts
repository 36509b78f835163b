import {
  indexAttempt,
  noteSent,
  results,
  type Message,
  type Results,
  type TrackedClicks,
} from "./message-outcomes-and-reactions.ts";
import { upTo } from "./rewind-contacts.ts";
import { msOf } from "./parse-log-times.ts";

/** Number of messages that a rewind handles before it pauses. This takes some tenths of a millisecond. */
const STEP_MESSAGES = 512;

/**
 * Restores step by step the results as they were after the event at `position`, as a fold of the log would give them,
 * with all entries in the same order. Events may be folded into `now` between two steps.
 */
export function* rewindResults(now: Results, position: number): Generator<void, Results, void> {
  const past = results.initial();
  // If most messages are newer, adding the older ones to empty maps is faster than removing the newer ones from copies.
  const isEarly = (now.messages.get(now.messages.size >> 1)?.position ?? 0) > position;
  if (!isEarly) {
    // Copies one map in each step, which takes a millisecond or two. If events add messages between the steps, the code
    // below removes them.
    past.messages = new Map(now.messages);
    yield;
    past.sent = new Map(now.sent);
    yield;
    past.handles = new Map(now.handles);
  }
  const moved: (readonly [number, Message])[] = [];
  let [groups, links] = [0, 0];
  for (const [number, message] of now.messages) {
    if (number % STEP_MESSAGES === 0) yield;
    if (message.outcome === "sent" && message.settled > position !== isEarly) moved.push([number, message]);
    if (message.position > position) {
      if (isEarly) break;
      past.messages.delete(number);
      continue;
    }
    const then = messageAt(message, position);
    if (isEarly || then !== message) past.messages.set(number, then);
    indexAttempt(past, then, number);
    // Groups and links are numbered from 0 in the order of their first use, so the highest number in the older messages
    // shows how many existed then.
    groups = Math.max(groups, then.group + 1);
    for (const link of then.links) links = Math.max(links, link + 1);
  }
  past.groups = now.groups.slice(0, groups);
  past.links = new Map(now.links.entries().take(links));
  past.named = now.named.filter(([at]) => at <= position);
  for (const [, template, name] of past.named) past.templates.set(template, name);
  moved.sort(([, one], [, other]) => (isEarly ? one.settled - other.settled : other.settled - one.settled));
  for (const [at, [number, message]] of moved.entries()) {
    if (at % STEP_MESSAGES === 0) yield;
    if (isEarly) noteSent(past, number);
    else unsend(past, number, message);
  }
  return past;
}

/** Removes from the indexes of sent messages one that was sent after the position; the latest is removed first. */
function unsend({ sent, handles }: Results, number: number, { id, username, superseded }: Message): void {
  const others = (handles.get(username) ?? []).filter((one) => one !== number);
  if (others.length > 0) handles.set(username, others);
  else handles.delete(username);
  if (sent.get(id) !== number) return;
  if (superseded >= 0) sent.set(id, superseded);
  else sent.delete(id);
}

/**
 * Returns a message as it was at a position after its intent. Copies it if it has changed since or has clicks, which
 * change in place. Sets absent members to undefined, because deleting them would make the object slow.
 */
export function messageAt(message: Message, position: number): Message {
  const { settled, seen, replied, opted_out, doubt, revoked } = message;
  const isUnchanged = Math.max(settled, seen, replied, opted_out) <= position && settled > 0;
  if (isUnchanged && message.tracked === null && revoked === undefined) return message;
  const until = (at: number): number => (at <= position ? at : 0);
  const isDoubted = doubt !== undefined && doubt.position <= position;
  const isRevoked = revoked !== undefined && revoked.position <= position;
  const tracked = isRevoked ? null : (revoked?.tracked ?? message.tracked);
  const isSettled = until(settled) > 0;
  const then: Message = {
    ...message,
    ...(isSettled ? {} : { outcome: isDoubted ? "in_doubt" : "open", settled: 0, superseded: -1 }),
    ...(doubt === undefined || isDoubted ? {} : { doubt: undefined }),
    seen: until(seen),
    replied: until(replied),
    opted_out: until(opted_out),
    ...(revoked === undefined || isRevoked ? {} : { revoked: undefined }),
  };
  return { ...then, tracked: tracked && trackedAt(tracked, then, position) };
}

/** Returns a copy of a message's clicks at the position. `then`: the message at that position. */
function trackedAt(tracked: TrackedClicks, { at, outcome, doubt }: Message, position: number): TrackedClicks {
  const clicks = upTo(tracked.clicks, position);
  const copy = { ...tracked, clicks, suspected: upTo(tracked.suspected, position) };
  if (clicks.length === 0) copy.first = null;
  if (outcome === "sent") return copy;
  copy.sent = msOf(at);
  copy.recorded = doubt?.time ?? copy.sent;
  return copy;
}
