import { channelsOf as statesOf, pendingOf, type Suspended } from "../../../projections/deliveries.ts";
import type { ChannelName } from "../../../events/channel.ts";
import { findDeadLetters, type DeadLetter } from "../../delivery/dead-letters.ts";
import type { Projector } from "../../projector/projector.ts";
import { Command, readConfig, EXIT, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
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
        const config = readConfig(terminal);
        await using session = await openSession(config);
        const { eventLog, projector } = session;
        const letters = (await findDeadLetters(eventLog.store)).filter(({ channel }) => wanted.includes(channel));
        const channels = countDispatches(projector, wanted).map((counts) => {
          return { ...counts, configured: isConfigured(config, counts.channel) };
        });
        terminal.out(
          json === true
            ? `${JSON.stringify({ channels, dead_letters: letters })}\n`
            : formatChannels(channels, letters),
        );
        return EXIT.ok;
      }),
    );

interface Counts {
  readonly channel: ChannelName;
  readonly pending: number;
  readonly dispatched: number;
  readonly skipped: number;
  readonly in_doubt: number;
  readonly dead: number;
  readonly suspended: Omit<Suspended, "credential"> | null;
}

function countDispatches(projector: Projector, wanted: readonly ChannelName[]): Counts[] {
  return statesOf(projector.state("deliveries"))
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
  const suspensions = channels.flatMap(({ channel, suspended }) =>
    suspended === null ? [] : [suspendedLine(channel, suspended)],
  );
  const gone = channels.filter(({ configured, pending }) => !configured && pending > 0).map(goneLine);
  const parts = [table(head, rows)];
  if (gone.length > 0) parts.push(gone.join(""));
  if (suspensions.length > 0) parts.push(suspensions.join(""));
  if (letters.length > 0) parts.push(table(["event", "channel", "tries", "given up", "why"], letters.map(letterRow)));
  return parts.join("\n");
}

function goneLine({ channel }: Counts): string {
  return `${channel} is not configured here: what is pending waits until it is\n`;
}

function suspendedLine(channel: ChannelName, { since, network, detail }: Omit<Suspended, "credential">): string {
  return printable(`${channel} is suspended since ${since}: ${network} refuses it as a whole, ${detail}`) + "\n";
}

function letterRow(letter: DeadLetter): (string | number)[] {
  const { event_id, channel, attempts, abandoned_at, detail, doubtful_since } = letter;
  const why = doubtful_since === undefined ? detail : `${detail}; may have arrived`;
  return [event_id, channel, attempts, abandoned_at, why];
}
