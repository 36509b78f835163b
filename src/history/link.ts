import type { ChannelName } from "../../events/channel.ts";
import { inOrder } from "../log/events-at.ts";
import { STREAMS } from "../log/event-log.ts";
import { findDispatches, readRequestedChannels } from "./dispatches.ts";
import type { History, Reading } from "./history.ts";
import { createTally, type Tally } from "./tally.ts";

/** The clicks of one link, the outcomes of their dispatches, and the number of each. */
export interface LinkHistory extends History {
  readonly tally: Tally;
}

/** The stream that holds the clicks of `domain/short_code`. */
export function streamOfLink(link: string): string {
  const slash = link.indexOf("/");
  return STREAMS.link(link.slice(0, slash), link.slice(slash + 1));
}

/**
 * Reads the clicks of one link and the outcomes of their dispatches: the link's own stream, and for each channel that a
 * click is dispatched to, all outcomes from the first such click on. Undefined: there is no click.
 */
export async function historyOfLink(reading: Reading, link: string): Promise<LinkHistory | undefined> {
  const { store, to } = reading;
  const findChannels = await readRequestedChannels(reading);
  const { take, tally } = createTally(findChannels);
  const requested = new Map<number, readonly ChannelName[]>();
  for await (const batch of store.readFolded({ stream: streamOfLink(link), to })) {
    for (const event of batch) {
      take(event);
      if (event.type === "LinkClicked") requested.set(event.position, findChannels(event));
    }
  }
  if (requested.size === 0) return undefined;
  const positions = [...requested.keys()];
  const dispatches = await findDispatches(reading, requested, (event) => {
    take(event);
    positions.push(event.position);
  });
  return { positions: inOrder(positions), dispatches, tally: tally() };
}
