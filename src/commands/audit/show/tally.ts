import type { EventType, Folded } from "../../../../events/catalog.ts";
import { CHANNELS, type ChannelName } from "../../../../events/channel.ts";
import { isOutcome } from "../../../../events/dispatches.ts";
import { positionsOf } from "../../../../events/sources.ts";
import { table } from "../../table.ts";
import type { Outcome } from "./dispatches.ts";

/** Counts the clicks of a link, and what became of their dispatches on each channel. */
export function createTally() {
  const counts = new Map<string, number>();
  const settled = new Map(CHANNELS.map((channel) => [channel, new Set<number>()]));
  const countOf = (what: string): number => counts.get(what) ?? 0;
  const add = (what: string): void => void counts.set(what, countOf(what) + 1);

  /** As the projection does: the first final outcome counts, and any other is one recorded again. */
  const takeOutcome = ({ type, data: { channel, requests } }: Outcome): void => {
    for (const source of requests.flatMap(({ sources }) => positionsOf(sources))) {
      const isAgain = settled.get(channel)?.has(source) ?? false;
      add(type !== "DispatchFailed" && isAgain ? `${channel} again` : `${channel} ${type}`);
      if (type !== "DispatchFailed") settled.get(channel)?.add(source);
    }
  };

  const row = (channel: ChannelName): (string | number)[] => {
    const of = (type: EventType): number => countOf(`${channel} ${type}`);
    const retried = of("DispatchRetryRequested");
    const dead = of("DispatchAbandoned");
    const [delivered, skipped] = [of("DispatchSucceeded"), of("DispatchSkipped")];
    const doubted = of("DispatchInDoubt");
    // A dead letter that was taken up again is requested a second time.
    const pending = countOf(`${channel} requested`) - delivered - skipped - doubted - dead;
    const discarded = of("DispatchDiscarded");
    const last = [retried, discarded, of("DispatchFailed"), countOf(`${channel} again`)];
    return [channel, pending, delivered, skipped, doubted, dead - retried - discarded, ...last];
  };

  return {
    /** In the order of the log, as far as a channel goes. */
    take(event: Folded): void {
      if (event.type === "LinkClicked") {
        add(event.data.bot ? "bots" : "people");
        for (const channel of event.data.channels) add(`${channel} requested`);
      } else if (event.type === "DispatchRetryRequested") {
        add(`${event.data.channel} requested`);
        add(`${event.data.channel} ${event.type}`);
      } else if (event.type === "DispatchDiscarded") add(`${event.data.channel} ${event.type}`);
      else if (isOutcome(event)) takeOutcome(event);
    },
    summary(): string {
      const clicks = `clicks of people ${countOf("people")}, of bots ${countOf("bots")}\n`;
      const rows = CHANNELS.filter((channel) => countOf(`${channel} requested`) > 0).map(row);
      return rows.length === 0 ? clicks : `${clicks}${table(HEAD, rows)}`;
    },
  };
}

const HEAD = [
  "channel",
  "pending",
  "delivered",
  "skipped",
  "in doubt",
  "dead",
  "taken up again",
  "discarded",
  "failed attempts",
  "recorded twice",
];
