import { channelsOf, pendingOf } from "../../../projections/deliveries.ts";
import type { ChannelName } from "../../../events/channel.ts";
import { findDeadLetters, type DeadLetter } from "../../delivery/dead-letters.ts";
import type { Projector } from "../../projector/projector.ts";
import { Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { answer } from "../shared/terminal.ts";
import { openSession } from "../shared/log-session.ts";
import { printable, table } from "../shared/table.ts";
import { channelOption, selectChannels, isConfigured } from "./channel-name.ts";

export const list: MakeCommand = (terminal, exit) =>
  new Command("list")
    .summary("show what is pending, suspended and dead on each channel")
    .description("What is pending on each channel, which of them are suspended and why, and every dead letter.")
    .addOption(channelOption())
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries list --channel chat")
    .action(
      exit(async ({ channel: name, json }) => {
        const wanted = selectChannels(name);
        await using session = await openSession(terminal);
        const { config, eventLog, projector } = session;
        const letters = (await findDeadLetters(eventLog.store)).filter(({ channel }) => wanted.includes(channel));
        const channels = countDispatches(projector, wanted).map((counts) => {
          return { ...counts, configured: isConfigured(config, counts.channel) };
        });
        answer(terminal, json, { channels, dead_letters: letters }, formatChannels(channels, letters));
      }),
    );

type Counts = ReturnType<typeof countDispatches>[number];

function countDispatches(projector: Projector, wanted: readonly ChannelName[]) {
  return channelsOf(projector.state("deliveries"))
    .filter(([channel]) => wanted.includes(channel))
    .map(([channel, state]) => {
      const { dispatched, skipped, in_doubt, dead, suspended } = state;
      const shown = suspended && { since: suspended.since, network: suspended.network, detail: suspended.detail };
      return { channel, pending: pendingOf(state), dispatched, skipped, in_doubt, dead, suspended: shown };
    });
}

function formatChannels(
  channels: readonly (Counts & { readonly configured: boolean })[],
  letters: readonly DeadLetter[],
): string {
  const head = ["channel", "pending", "delivered", "skipped", "in doubt", "dead"];
  const rows = channels.map(({ channel, pending, dispatched, skipped, in_doubt, dead }) => {
    return [channel, pending, dispatched, skipped, in_doubt, dead];
  });
  const unconfigured = channels
    .filter(({ configured, pending }) => !configured && pending > 0)
    .map(({ channel }) => `${channel} is not configured here: what is pending waits until it is\n`);
  const suspensions = channels.flatMap(({ channel, suspended }) => {
    if (suspended === null) return [];
    const { since, network, detail } = suspended;
    return `${printable(`${channel} is suspended since ${since}: ${network} refuses it as a whole, ${detail}`)}\n`;
  });
  const dead =
    letters.length === 0 ? "" : table(["event", "channel", "tries", "given up", "why"], letters.map(letterRow));
  return [table(head, rows), unconfigured.join(""), suspensions.join(""), dead]
    .filter((part) => part !== "")
    .join("\n");
}

function letterRow(letter: DeadLetter): (string | number)[] {
  const { event_id, channel, attempts, abandoned_at, detail, doubtful_since } = letter;
  const why = doubtful_since === undefined ? detail : `${detail}; may have arrived`;
  return [event_id, channel, attempts, abandoned_at, why];
}
