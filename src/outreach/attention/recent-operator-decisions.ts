import type { EventType, Recorded } from "../../../events/event-types-and-codec.ts";
import { findChannel } from "../../../projections/deliveries.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import { readBacklog } from "../../delivery/channel-backlog-and-undelivered.ts";
import { mention, say, type Sentence } from "../../history/sentences/sentence-parts.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { newestEvents, type PageMoment } from "../../projector/moment-of-console-page.ts";

/** Types of events that record an operator's decision, such as to retry a dispatch or to sign in. */
const DECISIONS: readonly EventType[] = [
  "DispatchRetryRequested",
  "DispatchDiscarded",
  "DispatchSettled",
  "ChannelResumed",
  "AccountAuthorized",
  "DirectMessageSent",
  "DirectMessageLeft",
  "MessagesLookedUp",
];

/**
 * For how long a decision is shown after it was made, in ms: 15 minutes, about as long as an operator works on the
 * list.
 */
const SHOWN_MS = 15 * 60_000;

/**
 * Maximum number of newest events that are read to find decisions. A decision about many dispatches has one event for
 * each, and the list counts only those of its events that were read.
 */
const EVENTS_READ = 500;

/** A recent decision of an operator, as the console lists it: such as to retry dispatches or to resume a channel. */
export interface DecidedItem {
  readonly title: Sentence;
  readonly caller: string;
  /** Time of the decision, ISO 8601. */
  readonly at: string;
  readonly why: string | undefined;
  /** Progress of retried dispatches: how many of `all` have ended. Undefined once all have, and for other decisions. */
  readonly progress: { readonly ended: number; readonly all: number } | undefined;
}

/** Reads what operators decided in the last 15 minutes, newest decision first. Events of one request are one item. */
export async function readDecided(moment: PageMoment<"deliveries">): Promise<readonly DecidedItem[]> {
  const events = await newestEvents(moment, { types: DECISIONS, limit: EVENTS_READ });
  const own = events.filter(
    (event) => moment.now - msOf(event.time) <= SHOWN_MS && event.meta.caller !== undefined && isOfOperator(event),
  );
  const groups = Map.groupBy(own, ({ type, data, meta, position }) => {
    const about = "channel" in data ? data.channel : "";
    return `${type} ${about} ${"as" in data ? data.as : ""} ${meta.request_id ?? position}`;
  });
  return [...groups.values()].map((group) => toDecided(moment, group as [Recorded, ...Recorded[]], own));
}

/** True if the event records an operator's decision, and not what a run or a network did. */
function isOfOperator({ type, data }: Recorded): boolean {
  if (type === "DirectMessageSent") return data.settled_by === "operator";
  return type !== "ChannelResumed" || data.why === "by_hand";
}

function toDecided(
  moment: PageMoment<"deliveries">,
  group: readonly [Recorded, ...Recorded[]],
  events: readonly Recorded[],
): DecidedItem {
  const [{ data, meta, time }] = group;
  const retried = countRetried(moment, group, events);
  const why = "why" in data && !("channel" in data && group[0].type === "ChannelResumed") ? data.why : undefined;
  const progress = retried !== undefined && retried.ended < retried.all ? retried : undefined;
  return { title: describeDecision(moment, group, retried), caller: meta.caller ?? "", at: time, why, progress };
}

function describeDecision(
  moment: PageMoment<"deliveries">,
  group: readonly [Recorded, ...Recorded[]],
  retried: ReturnType<typeof countRetried>,
): Sentence {
  const [event, ...others] = group;
  const number = group.length;
  const channel = "channel" in event.data && event.data.channel !== undefined ? event.data.channel : "webhook";
  const { title } = readBacklog(moment.state("deliveries"), channel);
  const dispatches = countInWords(number, "dispatch", "dispatches");
  const more = others.length === 0 ? "" : ` and ${countInWords(others.length, "other")}`;
  switch (event.type) {
    case "DispatchRetryRequested": {
      const { arrived, failed, all } = retried!;
      const again = failed === 0 ? "" : `, ${grouped(failed)} failed again`;
      return say`Retried ${dispatches} for ${title}: ${grouped(arrived)} arrived${again}, ${grouped(all - arrived - failed)} under way`;
    }
    case "DispatchDiscarded":
      return say`Discarded ${countInWords(number, "dead letter")} of ${title}`;
    case "DispatchSettled":
      return event.data.as === "arrived"
        ? say`${dispatches} reached ${title}`
        : say`Left ${dispatches} to ${title} as unknown`;
    case "ChannelResumed":
      return say`Resumed ${title}`;
    case "AccountAuthorized":
      return say`Signed in to X as ${mention({ username: event.data.user.username })}`;
    case "DirectMessageSent":
      return say`The message to ${mention(event.data.recipient)}${more} arrived`;
    case "DirectMessageLeft":
      return say`Left the message to ${mention(event.data.recipient)}${more} as unknown`;
    case "MessagesLookedUp": {
      const { in_doubt, sent, not_delivered } = event.data;
      return say`Looked up ${countInWords(in_doubt, "message")}: ${sent} sent, ${not_delivered} not delivered`;
    }
    default:
      return [event.type];
  }
}

/**
 * Counts the dispatches that an operator retried in one request, whose events are `group`, by how they ended; undefined
 * if it was no retry. `events`: recent decisions of operators, some of which may have given up a retry that failed.
 */
function countRetried({ state }: PageMoment<"deliveries">, group: readonly Recorded[], events: readonly Recorded[]) {
  const retries = group.flatMap(({ type, data }) => (type === "DispatchRetryRequested" ? [data] : []));
  const [first] = retries;
  if (first === undefined) return undefined;
  const { letters } = findChannel(state("deliveries"), first.channel);
  const pending = new Set(letters.taken_up.values());
  const underWay = retries.filter(({ source }) => pending.has(source)).length;
  const givenUp = new Set(events.flatMap((event) => toGivenUp(event, group[0]!) ?? []));
  const failed = retries.filter(
    ({ source }) => letters.dead.has(source) || letters.in_doubt.has(source) || givenUp.has(source),
  ).length;
  const ended = retries.length - underWay;
  return { all: retries.length, ended, failed, arrived: ended - failed };
}

/**
 * Returns the source of a dispatch that an operator gave up after its retry; undefined if the event records another
 * decision.
 */
function toGivenUp({ type, data, position }: Recorded, retry: Recorded): number | undefined {
  const isGivenUp = type === "DispatchDiscarded" || (type === "DispatchSettled" && data.as === "left");
  if (!isGivenUp || position < retry.position || !("channel" in retry.data)) return undefined;
  return data.channel === retry.data.channel ? data.source : undefined;
}
