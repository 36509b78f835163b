import type { ChannelName } from "../../../events/channel.ts";
import { isoTime, sleep } from "../../platform/clock.ts";
import { drainInWords, measureLags, NEWEST_MS, RATE_MS, type ChannelLag } from "../../delivery/lag.ts";
import { Command, type MakeCommand } from "../shared/command.ts";
import { answer } from "../shared/terminal.ts";
import { openSession } from "../shared/log-session.ts";
import { channelOption, selectChannels, isConfigured } from "./channel-name.ts";
import { formatDuration } from "../../platform/duration.ts";
import { printable, table } from "../shared/table.ts";

/** Often enough to see a backlog move; each look reads the end of the log. */
const WATCH_MS = 2_000;

export const lag: MakeCommand = (terminal, exit) =>
  new Command("lag")
    .summary("show how far each channel is behind")
    .description(
      `How far each channel is behind: what is pending, the age of the oldest click among
it, how much completed and was requested a minute in the last ${formatDuration(RATE_MS / 1_000)}, and
when nothing is pending any more, by the rate of the last ${formatDuration(NEWEST_MS / 1_000)}: "growing" while more comes than goes.`,
    )
    .addOption(channelOption())
    .option("--json", "answer with one JSON object")
    .option("--watch", `again every ${WATCH_MS / 1_000} seconds, until interrupted`)
    .addHelpText("after", "\nExample:\n  reachlog deliveries lag --watch")
    .action(
      exit(async ({ channel: name, json, watch }) => {
        await using session = await openSession(terminal);
        const { config, eventLog, projector, logClock } = session;
        const sources = {
          store: eventLog.store,
          deliveries: () => projector.state("deliveries"),
          isConfigured: (channel: ChannelName) => isConfigured(config, channel),
        };
        const { signal } = terminal;
        for (;;) {
          const now = logClock.now();
          const lags = await measureLags(sources, selectChannels(name), now);
          const time = isoTime(now);
          answer(terminal, json, { time, channels: lags }, `${table(HEAD, lags.map(row))}(${time})\n`);
          if (watch !== true) return undefined;
          await Promise.race([sleep(WATCH_MS, signal), projector.failed]);
          // The signal's reason is the code that a shell expects of it.
          if (signal.aborted) return Number(signal.reason);
        }
      }),
    );

const HEAD = ["channel", "backlog", "oldest click", "settled/min", "requested/min", "drained in", "state"];

function row(lag: ChannelLag): (string | number)[] {
  const { channel, backlog, oldest_click_seconds: age } = lag;
  const rates = [lag.settled_per_minute, lag.requested_per_minute];
  return [channel, backlog, age === null ? "" : formatDuration(age), ...rates, drainInWords(lag), describeState(lag)];
}

function describeState({ configured, backlog, suspended, failures_in_a_row: failures }: ChannelLag): string {
  if (!configured && backlog > 0) return "not configured here";
  if (suspended !== null) return printable(`suspended since ${suspended.since}`);
  return failures === 0 ? "" : `the last ${failures === 1 ? "attempt" : `${failures} attempts`} failed`;
}
