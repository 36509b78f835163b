import type { EventType, Folded, LogStore } from "../../events/event-types-and-codec.ts";
import { sortChannels, type ChannelName } from "../../events/channel-and-lane-names.ts";
import { isOutcome } from "../../events/dispatches-requested-by-events.ts";
import { positionsOf } from "../../events/position-ranges.ts";
import { byLastClick } from "../../projections/drop-oldest-links.ts";
import { createStates } from "../../projections/fold-states.ts";
import { suspected } from "../../projections/clicks-suspected-as-networks-own.ts";
import type { Place } from "../projector/parse-moment.ts";
import type { FindChannels, DispatchOutcome } from "./dispatch-outcomes.ts";
import type { SomeStates } from "../../projections/all.ts";

export type Tally = ReturnType<ReturnType<typeof createTally>["tally"]>;
export type ChannelTally = Tally["channels"][number];

/** Creates a counter of a link's clicks, and of the outcomes of their dispatches on each channel. */
export function createTally(findChannels: FindChannels) {
  const counts = new Map<string, number>();
  const settled = new Map<ChannelName, Set<number>>();
  const requested = new Set<ChannelName>();
  const count = (what: string): number => counts.get(what) ?? 0;
  const add = (what: string): void => void counts.set(what, count(what) + 1);

  /**
   * Counts an outcome as the projection of deliveries does: the first final outcome of a dispatch by its type, and
   * later final ones as `again`. `DispatchFailed` is not final, and counts each time.
   */
  const takeOutcome = ({ type, data: { channel, requests } }: DispatchOutcome): void => {
    const ofChannel = settled.getOrInsertComputed(channel, () => new Set());
    for (const source of requests.flatMap(({ sources }) => positionsOf(sources))) {
      const isAgain = ofChannel.has(source);
      add(type !== "DispatchFailed" && isAgain ? `${channel} again` : `${channel} ${type}`);
      if (type !== "DispatchFailed") ofChannel.add(source);
    }
  };

  const tallyChannel = (channel: ChannelName) => {
    const of = (type: EventType): number => count(`${channel} ${type}`);
    const [delivered, skipped, inDoubt] = [of("DispatchSucceeded"), of("DispatchSkipped"), of("DispatchInDoubt")];
    const [dead, retried, discarded] = [of("DispatchAbandoned"), of("DispatchRetryRequested"), of("DispatchDiscarded")];
    const retriedInDoubt = count(`${channel} retried in doubt`);
    const arrived = count(`${channel} arrived`);
    return {
      channel,
      // A retry is a second request for the dispatch, so it counts as requested once more.
      pending: count(`${channel} requested`) - delivered - skipped - inDoubt - dead,
      delivered: delivered + arrived,
      skipped,
      /** Number of dispatches in doubt that no operator has retried or settled. */
      inDoubt: inDoubt - retriedInDoubt - of("DispatchSettled"),
      /** Number of dead letters that no operator has retried or discarded. */
      dead: dead - (retried - retriedInDoubt) - discarded,
      retried,
      discarded,
      failedAttempts: of("DispatchFailed"),
      recordedAgain: count(`${channel} again`),
    };
  };

  return {
    /** Counts an event. Outcomes of the same channel must be passed in the order of the log. */
    take(event: Folded): void {
      if (event.type === "LinkClicked") {
        add(event.data.bot ? "bots" : "people");
        for (const channel of findChannels(event)) {
          requested.add(channel);
          add(`${channel} requested`);
        }
      } else if (event.type === "DispatchRetryRequested") {
        add(`${event.data.channel} requested`);
        add(`${event.data.channel} ${event.type}`);
        if (event.data.in_doubt === true) add(`${event.data.channel} retried in doubt`);
      } else if (event.type === "DispatchDiscarded" || event.type === "DispatchSettled") {
        add(`${event.data.channel} ${event.type}`);
        if (event.type === "DispatchSettled" && event.data.as === "arrived") add(`${event.data.channel} arrived`);
      } else if (isOutcome(event)) takeOutcome(event);
    },
    tally() {
      return { people: count("people"), bots: count("bots"), channels: sortChannels(requested).map(tallyChannel) };
    },
  };
}

type Counted = SomeStates<"clicks" | "suspected">;

/** Types of the events, other than clicks, that make clicks suspected, such as messages. */
const MESSAGES: readonly EventType[] = suspected.types.filter((type) => type !== "LinkClicked");

/**
 * Counts the clicks of one link. Reads the link's own streams, and the messages that make clicks suspected, so it also
 * counts a link that the projection no longer counts by itself.
 */
export async function countLink(store: LogStore, streams: readonly string[], { position }: Place): Promise<Counted> {
  const states = createStates(["clicks", "suspected"]);
  const queries = [...streams.map((stream) => ({ stream })), { types: MESSAGES }];
  const events = queries.map((query) => flatten(store.readFolded({ ...query, to: position })));
  for await (const event of mergeInLogOrder(events)) states.evolve(event);
  return states.all();
}

type Events = AsyncGenerator<Folded, undefined, void>;

async function* flatten(batches: AsyncIterable<readonly Folded[]>): Events {
  for await (const batch of batches) yield* batch;
  return undefined;
}

/** Merges several readings of the log into one, in the order of the log. Each event may be in one reading only. */
async function* mergeInLogOrder(sources: readonly Events[]) {
  const heads = await Promise.all(sources.map(async (events) => ({ events, next: (await events.next()).value })));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) if (nextPosition(head) < nextPosition(first)) first = head;
    if (first?.next === undefined) return;
    yield first.next;
    first.next = (await first.events.next()).value;
  }
}

function nextPosition(head: { readonly next: Folded | undefined } | undefined): number {
  return head?.next?.position ?? Infinity;
}

/**
 * Lists links: first by clicks of people, then by clicks of bots, then by their last click. `clicks` are those of
 * people; `suspected` is the part of them that the network's own fetchers probably made.
 */
export function listLinkCounts({ clicks: { links }, suspected }: Counted) {
  return byLastClick(links)
    .map(([link, { clicks: people, bots, first, last }]) => {
      return { link, clicks: people, bots, suspected: suspected.links.get(link)?.suspected ?? 0, first, last };
    })
    .sort((a, b) => b.clicks - a.clicks || b.bots - a.bots);
}
