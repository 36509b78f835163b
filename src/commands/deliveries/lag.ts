import { pendingOf } from "../../../projections/deliveries.ts";
import type { ChannelName } from "../../../events/channel.ts";
import { sleep, systemClock } from "../../platform/clock.ts";
import type { Config } from "../../config/config.ts";
import type { EventLog } from "../../log/event-log.ts";
import type { Projector } from "../../projector/projector.ts";
import { Command, configOf, EXIT, type MakeCommand, type Terminal } from "../command.ts";
import { openExistingLog, openSession } from "../log-session.ts";
import { channelOption, channelsOf, isConfigured } from "./channel-name.ts";
import { lagOf, lagsAsText, type ChannelLag } from "./lag-of.ts";
import { readOldestClick, readRequested, readTail } from "./tail.ts";

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
  const session = { ...(await openSession(stack, await openExistingLog(config))), config };
  const look = async (): Promise<void> => {
    const now = systemClock();
    const lags = await measure(session, wanted, now);
    const time = new Date(now).toISOString();
    terminal.out(json === true ? `${JSON.stringify({ time, channels: lags })}\n` : lagsAsText(lags, time));
  };
  await look();
  return again === true ? await watch(terminal, session.projector, look) : EXIT.ok;
}

interface Session {
  readonly config: Config;
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

async function measure(
  { eventLog: { store }, projector, config }: Session,
  wanted: readonly ChannelName[],
  now: number,
): Promise<ChannelLag[]> {
  const requested = await readRequested(store, now);
  const lags: ChannelLag[] = [];
  for (const channel of wanted) {
    const tail = await readTail(store, channel, now);
    const state = projector.state("deliveries")[channel];
    const { suspended } = state;
    const backlog = pendingOf(state);
    const oldest = await readOldestClick(store, channel, state.lanes.clicks);
    const configured = isConfigured(config, channel);
    lags.push(
      lagOf({
        channel,
        configured,
        backlog,
        suspended,
        oldest,
        ...tail,
        requestedPerMinute: requested.get(channel) ?? 0,
        now,
      }),
    );
  }
  return lags;
}

/** Looks again and again until the signal; its reason is the exit code that a shell expects. */
async function watch({ signal }: Terminal, projector: Projector, look: () => Promise<void>): Promise<number> {
  for (;;) {
    await Promise.race([sleep(WATCH_MS, signal), projector.failed]);
    if (signal.aborted) return Number(signal.reason);
    await look();
  }
}
