import { Command, group, InvalidArgumentError, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, table, printable } from "./shared/terminal.ts";
import { openSession } from "./shared/log-session.ts";
import { Value } from "@sinclair/typebox/value";
import { channelName, CHANNELS, type ChannelName } from "../../events/channel.ts";
import { listChannels, type Deliveries } from "../../projections/deliveries.ts";
import { selectedChannels } from "../delivery/dead-letter-filter.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { usageError } from "../platform/service-error.ts";
import { connectNetworks } from "../service/networks.ts";
import type { TestResult } from "../http/features/send-to-channel.ts";
import { plain } from "../history/words/sentence.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "./shared/ask-service.ts";
import { isoTime, sleep } from "../platform/clock.ts";
import { drainInWords, measureLags, NEWEST_MS, RATE_MS, type ChannelLag } from "../delivery/lag.ts";
import { formatDuration } from "../platform/format-duration.ts";

const channelOption = () =>
  Object.assign(new Option("--channel <name>", "only this channel, also webhook-NAME").argParser(parseChannel), {
    // Webhooks with a name are known once the log is open.
    argChoices: [...CHANNELS],
  });

function parseChannel(name: string): ChannelName {
  if (Value.Check(channelName, name)) return name;
  throw new InvalidArgumentError(`Allowed choices are ${CHANNELS.join(", ")}, or webhook-NAME.`);
}

/** The channel of `--channel`, or all. Throws a ServiceError (usage) for one that the log does not know. */
function selectChannels(deliveries: Deliveries, name: ChannelName | undefined): readonly ChannelName[] {
  if (name !== undefined && !(name in deliveries))
    throw usageError(`the log has no channel ${name}: ${listChannels(deliveries).join(", ")}`);
  return selectedChannels(omitUndefined({ channel: name }), deliveries);
}

/** Often enough to see a backlog move; each look reads the end of the log. */
const WATCH_MS = 2_000;

export const lag: MakeCommand = (terminal) =>
  new Command("lag")
    .summary("show how far each channel is behind")
    .description(
      `How far each channel is behind: what is pending, the age of the oldest click among
it, how much completed and was requested a minute in the last ${formatDuration(RATE_MS / 1_000)}, and
when nothing is pending any more, by the rate of the last ${formatDuration(NEWEST_MS / 1_000)}: "growing" while more is requested than completed.`,
    )
    .addOption(channelOption())
    .option("--json", "answer with one JSON object")
    .option("--watch", `repeat every ${WATCH_MS / 1_000} seconds, until interrupted`)
    .examples("reachlog deliveries lag --watch")
    .action(async ({ channel: name, json, watch }) => {
      await using session = await openSession(terminal);
      const { config, eventLog, projector, logClock } = session;
      const { channels } = connectNetworks(config);
      const sources = {
        store: eventLog.store,
        deliveries: () => projector.state("deliveries"),
        isConfigured: (channel: ChannelName) => channels.some((one) => one.name === channel),
      };
      const { signal } = terminal;
      for (;;) {
        const now = logClock.now();
        const lags = await measureLags(sources, selectChannels(sources.deliveries(), name), now);
        const time = isoTime(now);
        answer(terminal, json, { time, channels: lags }, `${table(LAG_HEAD, lags.map(lagRow))}(${time})\n`);
        if (watch !== true) return undefined;
        await Promise.race([sleep(WATCH_MS, signal), projector.failed]);
        // The signal's reason is the code that a shell expects of it.
        if (signal.aborted) return Number(signal.reason);
      }
    });

const LAG_HEAD = ["channel", "backlog", "oldest click", "settled/min", "requested/min", "drained in", "state"];

function lagRow(lag: ChannelLag): (string | number)[] {
  const { channel, backlog, oldest_click_seconds: age } = lag;
  const rates = [lag.settled_per_minute, lag.requested_per_minute];
  return [channel, backlog, age === null ? "" : formatDuration(age), ...rates, drainInWords(lag), describeState(lag)];
}

function describeState({ configured, backlog, suspended, failures_in_a_row: failures }: ChannelLag): string {
  if (!configured && backlog > 0) return "not configured here";
  if (suspended !== null) return printable(`suspended since ${suspended.since}`);
  return failures === 0 ? "" : `the last ${failures === 1 ? "attempt" : `${failures} attempts`} failed`;
}

const test: MakeCommand = (terminal) =>
  new Command("test")
    .summary("send a test message to each channel, or to one")
    .description(
      `Asks the running service to send a test message to each channel, or to one, one attempt
each, as POST /api/tracking/test does. Exit code 1 when one that is configured does not
take it.

${TOKEN_HELP}`,
    )
    .addOption(channelOption())
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .examples("reachlog deliveries test --channel webhook-crm")
    .action(async ({ channel: only, url, json }) => {
      const body = only === undefined ? {} : { channel: only };
      const tested = (await askService(terminal, url, "/api/tracking/test", body)) as {
        results: Record<string, TestResult>;
      };
      const rows = Object.entries(tested.results).map(([channel, result]) => ({ channel, ...result }));
      const cells = rows.map(({ channel, status, detail = "" }) => [channel, plain(status), detail]);
      answer(terminal, json, tested, table(["channel", "result", ""], cells));
      return rows.every(({ ok, status }) => ok || status === "not_configured") ? EXIT.ok : EXIT.fault;
    });

export const deliveries = group(
  "deliveries",
  "list, retry, discard, settle dispatches; test, resume channels",
  [lag, test],
  "All of them work beside a running service.",
);
