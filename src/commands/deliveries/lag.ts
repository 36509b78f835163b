import type { ChannelName } from "../../../events/channel.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import { measureLags } from "../../delivery/lag.ts";
import type { Projector } from "../../projector/projector.ts";
import { Command, configOf, EXIT, type MakeCommand, type Terminal } from "../command.ts";
import { openExistingLog, openSession } from "../log-session.ts";
import { channelOption, channelsOf, isConfigured } from "./channel-name.ts";
import { lagsAsText } from "./lag-text.ts";

/** Often enough to see a backlog move; each look reads the end of the log. */
const WATCH_MS = 2_000;

export const lag: MakeCommand = (terminal, exit) =>
  new Command("lag")
    .summary("show how far each channel is behind")
    .description(
      `How far each channel is behind: what is pending, the age of the oldest click among
it, how much completed and was requested a minute in the last five, and when at
that rate nothing is pending any more: never, while as much comes as goes.`,
    )
    .addOption(channelOption())
    .option("--json", "answer with one JSON object")
    .option("--watch", `anew every ${WATCH_MS / 1_000} seconds, until interrupted`)
    .addHelpText("after", "\nExample:\n  reachlog deliveries lag --watch")
    .action(exit(({ channel, json, watch: again }) => showLag(terminal, channelsOf(channel), { json, again })));

async function showLag(
  terminal: Terminal,
  wanted: readonly ChannelName[],
  { json, again }: { readonly json: true | undefined; readonly again: true | undefined },
): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const config = configOf(terminal);
  const { eventLog, projector } = await openSession(stack, await openExistingLog(config));
  const sources = {
    store: eventLog.store,
    deliveries: () => projector.state("deliveries"),
    isConfigured: (channel: ChannelName) => isConfigured(config, channel),
  };
  const look = async (): Promise<void> => {
    const now = systemClock();
    const lags = await measureLags(sources, wanted, now);
    const time = new Date(now).toISOString();
    terminal.out(json === true ? `${JSON.stringify({ time, channels: lags })}\n` : lagsAsText(lags, time));
  };
  await look();
  return again === true ? await watch(terminal, projector, look) : EXIT.ok;
}

/** Looks again and again until the signal; its reason is the exit code that a shell expects. */
async function watch({ signal }: Terminal, projector: Projector, look: () => Promise<void>): Promise<number> {
  for (;;) {
    await Promise.race([sleep(WATCH_MS, signal), projector.failed]);
    if (signal.aborted) return Number(signal.reason);
    await look();
  }
}
