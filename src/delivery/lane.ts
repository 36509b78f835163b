import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import type { ChannelName, Lane } from "../../events/channel.ts";
import { isSettled, owedChannels, type LaneState } from "../../projections/deliveries.ts";
import type { Outcome } from "./attempt.ts";
import { OWING } from "./owed.ts";

/** Dispatches a lane holds in memory, in flight and waiting: its memory, however long the backlog. */
export const WINDOW_ITEMS = 256;

/** One owed dispatch that is not settled. */
export interface Item {
  readonly event: Recorded;
  /** Attempts made so far. */
  attempts: number;
  /** Not to be tried before, ms since the epoch. */
  notBefore: number;
  inFlight: boolean;
  /** What became of the last attempt, while the log has not taken it. */
  unrecorded?: Outcome;
}

/** A bounded window over what the log owes one channel in one lane. */
export interface LaneWindow {
  readonly name: Lane;
  /** Reads on in the log until the window is full or the log ends; without effect while neither can have changed. */
  fill(): Promise<void>;
  /** The log has grown by something that this lane may owe. */
  notice(): void;
  /** What the log says is settled was corrected: the window is filled anew. */
  reopen(): void;
  /** The oldest item that may be tried now (and that is wanted). */
  next(now: number, wanted?: (item: Item) => boolean): Item | undefined;
  /** When the next waiting item becomes due; undefined while none waits. */
  nextDue(): number | undefined;
  /** The item is settled, durably. */
  remove(item: Item): void;
  /** Everything owed below this position is settled or waits for its retry, once `item` is or does. */
  settledBelow(item: Item): number;
}

/** Restores the window of a lane from what the log says is settled. */
export function openLane(
  store: EventStore<Event>,
  channel: ChannelName,
  name: Lane,
  state: () => LaneState,
): LaneWindow {
  const items = new Map<number, Item>();
  /** In flight since before the window was opened anew; each is back in it once the log is read that far. */
  const flying = new Map<number, Item>();
  let readFrom: number;
  /** The log may hold more than was read. */
  let more: boolean;
  /** Those waiting for their retry since before `readFrom`, until they are in the window again. */
  let waiting: number[];
  let isOutdated = false;

  const open = (): void => {
    for (const [position, item] of items) if (item.inFlight) flying.set(position, item);
    items.clear();
    readFrom = Math.max(1, state().settled_below);
    more = true;
    waiting = [...state().retries.keys()].filter((position) => position < readFrom).sort((a, b) => a - b);
  };
  open();

  const resume = async (): Promise<void> => {
    for (const position of waiting) {
      for await (const event of store.read({ from: position, to: position })) admit(event);
    }
    waiting = [];
  };

  const readOn = async (): Promise<void> => {
    while (more && items.size < WINDOW_ITEMS) {
      more = false;
      const wanted = WINDOW_ITEMS - items.size;
      let read = 0;
      for await (const event of store.read({ types: OWING[name], from: readFrom, limit: wanted })) {
        read++;
        readFrom = event.position + 1;
        if (owedChannels(event).includes(channel) && !isSettled(state(), event.position)) admit(event);
      }
      more ||= read === wanted;
    }
  };

  const admit = (event: Recorded): void => {
    const { position } = event;
    const retry = state().retries.get(position);
    const known = flying.get(position);
    flying.delete(position);
    items.set(
      position,
      known ?? {
        event,
        attempts: retry?.attempt ?? 0,
        notBefore: retry === undefined ? 0 : Date.parse(retry.retry_at),
        inFlight: false,
      },
    );
  };

  return {
    name,
    async fill() {
      if (isOutdated) open();
      isOutdated = false;
      if (waiting.length > 0) await resume();
      // Refilled by halves: a read for each settled item would cost as much as the dispatch.
      if (more && items.size <= WINDOW_ITEMS / 2) await readOn();
    },
    notice() {
      more = true;
    },
    reopen() {
      isOutdated = true;
    },
    next(now, wanted = () => true) {
      for (const item of items.values()) if (!item.inFlight && item.notBefore <= now && wanted(item)) return item;
      return undefined;
    },
    nextDue() {
      let due: number | undefined;
      for (const { inFlight, notBefore } of items.values()) {
        if (!inFlight && (due === undefined || notBefore < due)) due = notBefore;
      }
      return due;
    },
    remove({ event: { position } }) {
      items.delete(position);
      flying.delete(position);
    },
    settledBelow(item) {
      // Items are held in the order of the log, so the first other one is the oldest that the log does not tell of.
      const { retries } = state();
      for (const position of items.keys()) {
        if (position !== item.event.position && !retries.has(position)) return position;
      }
      return readFrom;
    },
  };
}
