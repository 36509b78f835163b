import { OWN_CAUSE, STREAMS, type Fact } from "../log/event-log.ts";
import type { OutcomeFact } from "./attempt.ts";
import type { FlightDeps } from "./dispatch.ts";
import type { Item, LaneWindow } from "./outbox-window.ts";
import { nextRound } from "./next-round.ts";

/**
 * Dispatches that the network answered and the log does not tell of yet, at the most: after a kill they are made again,
 * as those in flight are.
 */
export const UNRECORDED_MAX = 64;

/** Events in one append: what comes while it is under way is the next one. */
const APPEND_EVENTS_MAX = 1_000;

/** Writes outcomes, those that come together in one append. */
export interface Recorder {
  /**
   * Resolves once the outcomes of the items are durable; those that are settled have left their lane then. Rejects when
   * the log did not take them: the items keep their outcomes.
   */
  record(lane: LaneWindow, items: readonly Item[], more: readonly Fact[]): Promise<void>;
}

type RecorderDeps = Pick<FlightDeps, "channel" | "journal" | "projector">;

interface Entry {
  readonly lane: LaneWindow;
  readonly items: readonly Item[];
  readonly more: readonly Fact[];
  readonly resolve: () => void;
  readonly reject: (fault: unknown) => void;
}

export function createRecorder({ channel, journal, projector }: RecorderDeps): Recorder {
  let waiting: Entry[] = [];
  let isWriting = false;

  const write = async (entries: readonly Entry[]): Promise<void> => {
    const facts = [...accounted(entries), ...entries.flatMap(({ more }) => more)];
    if (facts.length > 0) {
      const appended = await journal.append(STREAMS.delivery(channel.name), facts, OWN_CAUSE);
      try {
        // Folded first: a lane that is filled anew meanwhile still finds them here.
        await projector.until(appended.last);
      } finally {
        for (const { lane, items } of entries) for (const item of items) settle(lane, item);
      }
    }
    for (const { resolve } of entries) resolve();
  };

  const pump = async (): Promise<void> => {
    while (waiting.length > 0) {
      await nextRound();
      const entries = waiting.slice(0, countNext(waiting));
      waiting = waiting.slice(entries.length);
      await write(entries).catch((fault: unknown) => {
        for (const { reject } of entries) reject(fault);
      });
    }
    isWriting = false;
  };

  return {
    record(lane, items, more) {
      return new Promise((resolve, reject) => {
        waiting.push({ lane, items, more, resolve, reject });
        if (isWriting) return;
        isWriting = true;
        void pump();
      });
    },
  };
}

function countNext(entries: readonly Entry[]): number {
  let events = 0;
  for (const [at, { items, more }] of entries.entries()) {
    events += items.length + more.length;
    if (events > APPEND_EVENTS_MAX) return Math.max(1, at);
  }
  return entries.length;
}

/**
 * The outcomes with their lane's account as it is now. All but a lane's last tell that of before: the events are read
 * one by one, and until the last of them the others are not settled.
 */
function accounted(entries: readonly Entry[]): OutcomeFact[] {
  return [...Map.groupBy(entries, ({ lane }) => lane)].flatMap(([lane, ofLane]) => {
    const told = ofLane.flatMap(({ items }) => items.filter(({ unrecorded }) => unrecorded !== undefined));
    const before = lane.settledBelow(NONE);
    const after = lane.settledBelow(new Set(told));
    return told.flatMap(({ unrecorded }, at) =>
      unrecorded === undefined ? [] : [withAccount(unrecorded.fact, at === told.length - 1 ? after : before)],
    );
  });
}

const NONE: ReadonlySet<Item> = new Set();

function withAccount(fact: OutcomeFact, settled_below: number): OutcomeFact {
  return { ...fact, data: { ...fact.data, settled_below } } as OutcomeFact;
}

function settle(lane: LaneWindow, item: Item): void {
  const { unrecorded } = item;
  if (unrecorded === undefined) return;
  if (unrecorded.final) lane.remove(item);
  if (unrecorded.fact.type === "ChannelDispatchFailed") lane.wait(item, Date.parse(unrecorded.fact.data.retry_at));
  delete item.unrecorded;
  item.attempts++;
}
