import type { Recorded } from "../../../events/catalog.ts";
import type { ChannelName } from "../../../events/channel.ts";
import { findChannel, type Suspended } from "../../../projections/deliveries.ts";
import { DISPATCH_ATTEMPTS_MAX } from "../../delivery/attempt-outcome.ts";
import {
  type DispatchHistory,
  type DispatchStatus,
  findDispatchHistories,
  toDispatchStatus,
  type WaitingDispatch,
} from "../../delivery/dispatch-status.ts";
import { isEventName } from "../../history/find-event.ts";
import { quoteText } from "../../history/words/sentence.ts";
import { usageError } from "../../platform/service-error.ts";
import { discloseEvent } from "../../privacy/read-audit.ts";
import { describeNarrowed, toEventJson } from "../../history/event-json.ts";
import { Command, type MakeCommand } from "../shared/command.ts";
import { openSession, recordRead } from "../shared/log-session.ts";
import { withProgress } from "../shared/progress.ts";
import { EXIT, fail, type Terminal, printable } from "../shared/terminal.ts";
import { channelOption, selectChannels, isConfigured } from "./filter-options.ts";

/** Shown of an event about many dispatches: a few screens. audit show lists all. */
const SHOWN_DISPATCHES_MAX = 20;

export const showDispatchCommand: MakeCommand = (terminal) =>
  new Command("show")
    .summary("show one dispatch from its beginning")
    .description(
      `Shows one dispatch from its beginning: what requested it, every attempt on each
channel, what an operator decided, its status, and when the next attempt is.
Of an event about many dispatches the first ${SHOWN_DISPATCHES_MAX} are shown.`,
    )
    .argument("<event_id>", "or position, of what requested it or of any event of the dispatch", parseEventId)
    .addOption(channelOption())
    .option("--json", "answer with one JSON object for each dispatch")
    .examples("reachlog deliveries show 43", "reachlog deliveries show 01a1fd59-3b3a-7515-964c-67ff53c10ed1")
    .action(async (id, { channel: name, json }) => {
      await using session = await openSession(terminal);
      const { config, eventLog, projector } = session;
      const { position: to } = projector;
      const states = projector.state("deliveries");
      const wanted = name && selectChannels(states, name);
      const dispatches = await withProgress(terminal, "reading", to, (onProgress) =>
        findDispatchHistories({ store: eventLog.store, to, onProgress }, id, { wanted, limit: SHOWN_DISPATCHES_MAX }),
      );
      if (dispatches === undefined) return fail(terminal, `the log has no event ${id}`);
      const [one, other] = dispatches;
      const about = one === undefined || other !== undefined ? {} : discloseEvent(one.source);
      await recordRead(terminal, eventLog.store, { resource: "deliveries", ...about, records: dispatches.length });
      if (json === true) {
        for (const dispatch of dispatches) terminal.out(`${JSON.stringify(toDispatchJson(dispatch))}\n`);
        return undefined;
      }
      const codes = dispatches.map((dispatch, at) => {
        if (at > 0) terminal.out("\n");
        return print(terminal, dispatch, (channel) => {
          return isConfigured(config, channel) ? findChannel(states, channel).suspended : "not configured";
        });
      });
      return Math.max(...codes);
    });

function parseEventId(text: string): string {
  if (!isEventName(text)) throw usageError("show needs the id or the position of an event");
  return text.toLowerCase();
}

function toDispatchJson({ source, channels, requested }: DispatchHistory): object {
  const shown = [...channels].map(([channel, events]) => {
    return { channel, fate: toDispatchStatus(events), events: events.map((event) => toEventJson(event, requested)) };
  });
  return { source: toEventJson(source, requested), channels: shown };
}

function print(
  terminal: Terminal,
  { source, channels, requested }: DispatchHistory,
  blockReason: (channel: ChannelName) => BlockReason,
): number {
  const { out } = terminal;
  out(formatEventLine(source, requested));
  if (channels.size === 0) return fail(terminal, "it requests no dispatch to any channel that was asked for");
  for (const [channel, events] of channels) {
    out(`\n${channel}: ${printable(describeDispatch(toDispatchStatus(events), blockReason(channel), source.id))}\n`);
    for (const event of events) out(`  ${formatEventLine(event, requested)}`);
  }
  return EXIT.ok;
}

/** Why the channel sends nothing now; null: it sends. */
type BlockReason = Suspended | "not configured" | null;

/** `id`: of the event whose dispatch it is. */
function describeDispatch(current: DispatchStatus, blocked: BlockReason, id: string): string {
  if (current.status === "waiting") return describeWait(current, blocked);
  return {
    delivered: "delivered",
    skipped: "not sent, and never will be",
    in_doubt:
      `in doubt, not retried automatically: send it again with reachlog deliveries retry ${id} --in-doubt ` +
      `--accept-doubles, or close it with reachlog deliveries settle ${id}`,
    dead: `a dead letter: send it with reachlog deliveries retry ${id}, or drop it with discard`,
    discarded: "discarded; never sent again",
    left: "in doubt, and left so by an operator; never sent again",
  }[current.status];
}

function describeWait({ attempts, retry_at }: WaitingDispatch, blocked: BlockReason): string {
  if (blocked === "not configured") return "waits: the channel is not configured here";
  if (blocked !== null) return `waits: the channel is suspended since ${blocked.since}, ${quoteText(blocked.detail)}`;
  if (retry_at === undefined) return "waits for its first attempt";
  return `waits: attempt ${attempts + 1} of ${DISPATCH_ATTEMPTS_MAX} is due at ${retry_at}`;
}

/** One event as a sentence; an outcome is narrowed to these dispatches. */
export function formatEventLine(event: Recorded, dispatches?: ReadonlySet<number>): string {
  return `${event.position} ${event.time} ${printable(describeNarrowed(event, dispatches))}\n`;
}
