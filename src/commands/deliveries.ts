import { Command, group, JSON_OPTION, Option, readConfig, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, fail, table, printable } from "./shared/terminal.ts";
import { discard, nameNumber, retry, settle } from "./deliveries/retry-and-discard.ts";
import { showDispatchCommand } from "./deliveries/show.ts";
import { resumeChannel } from "../delivery/suspension.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import {
  channelArgument,
  channelOption,
  errorOption,
  fromOption,
  isConfigured,
  linkOption,
  selectChannels,
  toOption,
} from "./deliveries/filter-options.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { TestResult } from "../http/features/send-to-channel.ts";
import { plain } from "../history/words/sentence.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "./shared/ask-service.ts";
import { findChannel, pendingOf, type Deliveries } from "../../projections/deliveries.ts";
import { findLetters } from "../delivery/dead-letters.ts";
import { DISPATCH_FILTER_WORDS, parseDispatchFilter, STATUSES } from "../delivery/dead-letter-filter.ts";
import { readDispatches, toDispatchJson } from "../delivery/list-dispatches.ts";
import type { LetterStatus } from "../../projections/dead-letters.ts";
import { isoTime, sleep } from "../platform/clock.ts";
import { drainInWords, measureLags, NEWEST_MS, RATE_MS, type ChannelLag } from "../delivery/lag.ts";
import { formatDuration } from "../platform/format-duration.ts";

export const list: MakeCommand = (terminal) =>
  new Command("list")
    .summary("show what is pending, suspended and dead on each channel")
    .description(
      `What is pending on each channel, which of them are suspended and why, and every
dead letter that matches, or every dispatch in doubt.`,
    )
    .addOption(channelOption())
    .addOption(new Option("--status <name>", DISPATCH_FILTER_WORDS.status).choices(STATUSES).default("dead" as const))
    .addOption(errorOption())
    .addOption(linkOption())
    .addOption(fromOption())
    .addOption(toOption())
    .option(...JSON_OPTION)
    .examples(
      "reachlog deliveries list --channel chat --error 5xx",
      "reachlog deliveries list --status in_doubt --from 2026-11-20",
    )
    .action(async ({ json, ...given }) => {
      const filter = parseDispatchFilter(given, readConfig(terminal).outreach.timezone);
      await using session = await openSession(terminal);
      const { config, eventLog, projector } = session;
      const at = { deliveries: projector.state("deliveries"), position: projector.position };
      const letters = await findLetters(eventLog.store, at, filter);
      const dispatches = (await readDispatches(eventLog.store, letters)).map(toDispatchJson);
      const channels = selectChannels(at.deliveries, filter.channel).map((channel) => {
        return countDispatches(at.deliveries, channel, isConfigured(config, channel));
      });
      const { status } = filter;
      const text = formatChannels(channels, status, dispatches);
      answer(terminal, json, { channels, status, count: dispatches.length, dispatches }, text);
    });

function countDispatches(deliveries: Deliveries, channel: ChannelName, configured: boolean) {
  const state = findChannel(deliveries, channel);
  const { dispatched, skipped, in_doubt, dead, suspended } = state;
  const shown = suspended && { since: suspended.since, network: suspended.network, detail: suspended.detail };
  return { channel, pending: pendingOf(state), dispatched, skipped, in_doubt, dead, suspended: shown, configured };
}

function formatChannels(
  channels: readonly ReturnType<typeof countDispatches>[],
  status: LetterStatus,
  dispatches: readonly ListedJson[],
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
  const columns = ["event", "channel", "tries", status === "dead" ? "given up" : "in doubt since", "why"];
  const listed =
    dispatches.length === 0
      ? ""
      : `${nameNumber(dispatches.length, status)}:\n${table(columns, dispatches.map(dispatchRow))}`;
  return [table(head, rows), unconfigured.join(""), suspensions.join(""), listed]
    .filter((part) => part !== "")
    .join("\n");
}

type ListedJson = ReturnType<typeof toDispatchJson>;

function dispatchRow({ event_id, channel, attempts, ended_at, ...rest }: ListedJson): (string | number)[] {
  const { http_status, detail, doubtful_since } = rest;
  const why = http_status === null ? detail : `${http_status}: ${detail}`;
  return [event_id, channel, attempts, ended_at, doubtful_since === null ? why : `${why}; may have arrived`];
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
      const sources = {
        store: eventLog.store,
        deliveries: () => projector.state("deliveries"),
        isConfigured: (channel: ChannelName) => isConfigured(config, channel),
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

const resume: MakeCommand = (terminal) =>
  new Command("resume")
    .summary("resume a suspended channel")
    .description(
      `Resumes a suspended channel: a running service sends pending dispatches at once, and
suspends the channel again if the network still refuses it.`,
    )
    .addArgument(channelArgument())
    .option(...JSON_OPTION)
    .examples("reachlog deliveries resume chat")
    .action(async (channel, { json }) => {
      await using session = await openSession(terminal);
      const ended = await resumeChannel(session, channel, COMMAND_METADATA);
      if (ended.kind === "not_suspended") return fail(terminal, `${channel} is not suspended`);
      const { since, repeated } = ended;
      const how = repeated ? "was resumed at the same moment" : `is resumed, suspended since ${since}`;
      return answer(terminal, json, { channel, since, repeated }, `${channel} ${how}\n`);
    });

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
  [list, showDispatchCommand, lag, retry, discard, settle, resume, test],
  "All of them work beside a running service.",
);
