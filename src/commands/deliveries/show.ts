import type { Recorded } from "../../../events/catalog.ts";
import type { ChannelName } from "../../../events/channel.ts";
import { requestedChannels } from "../../../projections/deliveries.ts";
import { findDispatches, sourceOf } from "../audit/show/dispatches.ts";
import { EVENT_ID, findEvent } from "../audit/show/find-event.ts";
import { eventsAt, inOrder, type Reading } from "../audit/show/history.ts";
import { sentenceOf } from "../audit/show/lines.ts";
import { Command, configOf, EXIT, usageError, type MakeCommand, type Terminal } from "../command.ts";
import { openExistingLog, openSession } from "../log-session.ts";
import { startProgress } from "../progress.ts";
import { printable } from "../table.ts";
import { channelOption, channelsOf, isConfigured } from "./channel-name.ts";
import { fateInWords, fateOf, type Hindrance } from "./fate.ts";

export const show: MakeCommand = (terminal, exit) =>
  new Command("show")
    .summary("show one dispatch from its beginning")
    .description(
      `One dispatch from its beginning: what it was requested by, every attempt on each
channel, what was decided by hand, where it is now, and when the next attempt is.`,
    )
    .argument("<event_id>", "of what requested it, or of any event of the dispatch", eventIdOf)
    .addOption(channelOption())
    .addHelpText("after", "\nExample:\n  reachlog deliveries show 01a1fd59-3b3a-7515-964c-67ff53c10ed1")
    .action(
      exit(async (id, { channel: name }) => {
        await using stack = new AsyncDisposableStack();
        const config = configOf(terminal);
        const { eventLog, projector } = await openSession(stack, await openExistingLog(config));
        const to = projector.position;
        const progress = startProgress(terminal, "reading", to);
        const reading = { store: eventLog.store, to, onProgress: progress.update };
        const dispatch = await findDispatch(reading, id, channelsOf(name));
        progress.end();
        if (dispatch === undefined) {
          terminal.err(`the log knows no event ${id}\n`);
          return EXIT.fault;
        }
        const states = projector.state("deliveries");
        return tell(terminal, dispatch, (channel) => {
          return isConfigured(config, channel) ? states[channel].suspended : "not configured";
        });
      }),
    );

function eventIdOf(text: string): string {
  if (!EVENT_ID.test(text)) throw usageError("show wants one event id");
  return text.toLowerCase();
}

interface Dispatch {
  /** What owed it, or the event asked for where it owes nothing. */
  readonly source: Recorded;
  /** Of each channel asked for to which it is owed: its outcomes and what was decided of it. */
  readonly channels: ReadonlyMap<ChannelName, readonly Recorded[]>;
}

/** Undefined: the log has no such event. */
async function findDispatch(
  reading: Reading,
  id: string,
  wanted: readonly ChannelName[],
): Promise<Dispatch | undefined> {
  const asked = await findEvent(reading, id);
  if (asked === undefined) return undefined;
  const source = await sourceOf(reading, asked);
  if (source === undefined) return { source: asked, channels: new Map() };
  const names = requestedChannels(source).filter((channel) => wanted.includes(channel));
  const positions: number[] = [];
  const owed = new Map([[source.position, names]]);
  await findDispatches(reading, owed, ({ position }) => void positions.push(position));
  // What was decided of other channels' letters is found too.
  const channels = new Map<ChannelName, Recorded[]>(names.map((name) => [name, []]));
  for await (const event of eventsAt(reading, inOrder(positions))) {
    if ("channel" in event.data) channels.get(event.data.channel)?.push(event);
  }
  return { source, channels };
}

function tell(
  { out, err }: Terminal,
  { source, channels }: Dispatch,
  hindranceOf: (channel: ChannelName) => Hindrance,
): number {
  out(sentenceOf(source));
  if (channels.size === 0) {
    err("no dispatch to any channel that was asked for is owed by it\n");
    return EXIT.fault;
  }
  for (const [channel, events] of channels) {
    out(`\n${channel}: ${printable(fateInWords(fateOf(events), hindranceOf(channel)))}\n`);
    for (const event of events) out(`  ${sentenceOf(event)}`);
  }
  return EXIT.ok;
}
