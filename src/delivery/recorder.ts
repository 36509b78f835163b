import { SERVICE_METADATA, STREAMS, type NewEvent } from "../log/event-log.ts";
import type { OutcomeEvent } from "./attempt.ts";
import type { DispatchDeps } from "./dispatch.ts";
import type { PendingDispatch, OutboxWindow } from "./outbox-window.ts";
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
  record(lane: OutboxWindow, items: readonly PendingDispatch[], more: readonly NewEvent[]): Promise<void>;
}

type RecorderDeps = Pick<DispatchDeps, "channel" | "eventLog" | "projector">;

interface Entry {
  readonly lane: OutboxWindow;
  readonly items: readonly PendingDispatch[];
  readonly more: readonly NewEvent[];
  readonly resolve: () => void;
  readonly reject: (fault: unknown) => void;
}

export function createRecorder({ channel, eventLog, projector }: RecorderDeps): Recorder {
  let waiting: Entry[] = [];
  let isWriting = false;

  const write = async (entries: readonly Entry[]): Promise<void> => {
    const newEvents = [...accounted(entries), ...entries.flatMap(({ more }) => more)];
    if (newEvents.length > 0) {
      const appended = await eventLog.append(STREAMS.delivery(channel.name), newEvents, SERVICE_METADATA);
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
function accounted(entries: readonly Entry[]): OutcomeEvent[] {
  return [...Map.groupBy(entries, ({ lane }) => lane)].flatMap(([lane, ofLane]) => {
    const told = ofLane.flatMap(({ items }) => items.filter(({ unrecorded }) => unrecorded !== undefined));
    const before = lane.lowWatermark(NONE);
    const after = lane.lowWatermark(new Set(told));
    return told.flatMap(({ unrecorded }, at) =>
      unrecorded === undefined ? [] : [withAccount(unrecorded.newEvent, at === told.length - 1 ? after : before)],
    );
  });
}

const NONE: ReadonlySet<PendingDispatch> = new Set();

function withAccount(newEvent: OutcomeEvent, low_watermark: number): OutcomeEvent {
  return { ...newEvent, data: { ...newEvent.data, low_watermark } } as OutcomeEvent;
}

function settle(lane: OutboxWindow, item: PendingDispatch): void {
  const { unrecorded } = item;
  if (unrecorded === undefined) return;
  if (unrecorded.final) lane.remove(item);
  if (unrecorded.newEvent.type === "DispatchFailed") lane.wait(item, Date.parse(unrecorded.newEvent.data.retry_at));
  delete item.unrecorded;
  item.attempts++;
}
