import type { ChannelName } from "../../../../events/channel.ts";
import { streamOfLink } from "../../link.ts";
import { findDispatches } from "./dispatches.ts";
import { inOrder, type History, type Reading } from "./history.ts";
import { createTally } from "./tally.ts";

/**
 * The clicks of one link and what became of their dispatches. Reads the link's own stream, and of each channel that a
 * click is owed to all outcomes from the first such click on. Undefined: there is no click.
 */
export async function historyOfLink(reading: Reading, link: string): Promise<History | undefined> {
  const { store, to } = reading;
  const { take, summary } = createTally();
  const owed = new Map<number, readonly ChannelName[]>();
  for await (const batch of store.readFolded({ stream: streamOfLink(link), to })) {
    for (const event of batch) {
      take(event);
      if (event.type === "LinkClicked") owed.set(event.position, event.data.channels);
    }
  }
  if (owed.size === 0) return undefined;
  const positions = [...owed.keys()];
  await findDispatches(reading, owed, (event) => {
    take(event);
    positions.push(event.position);
  });
  return { positions: inOrder(positions), summary: summary() };
}
