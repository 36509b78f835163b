import type { ChannelName, Lane } from "../events/channel-and-lane-names.ts";
import type { EventType, Folded } from "../events/event-types-and-codec.ts";
import type { RunEnd } from "../events/outreach.ts";
import { countPositions } from "../events/position-ranges.ts";
import type { Projection } from "./projection.ts";
import { quarterAt, recentQuarterAt, type Quarters } from "./count-by-quarter-hour.ts";
import { msOf } from "./parse-log-times.ts";

/** Events of one kind within a quarter of an hour. */
export interface NewsCount {
  count: number;
  /** Time of the first event of this kind in the quarter of an hour, in ms since 1970. */
  first: number;
  /** Time of the last event of this kind in the quarter of an hour, in ms since 1970. */
  last: number;
  /** Log positions of the first events of this kind in the quarter of an hour, at most {@link POSITIONS_MAX}. */
  positions: number[];
}

/** A run or dry run, with the messages that it has sent, skipped and failed to send so far. */
export interface NewsRun {
  readonly dry_run: boolean;
  /** Name of the run's template, or its id; null if an older event names none. */
  readonly template: string | null;
  /** Time at which the run started, in ms since 1970. */
  readonly first: number;
  /** Time of the run's last event, in ms since 1970. */
  last: number;
  /** Reason of the run's end, `abandoned` if its process died; null while it is in progress. */
  end: RunEnd | "abandoned" | null;
  /** Position of the event that ended the run; null while it is in progress. */
  ended: number | null;
  sent: number;
  /** Number of recipients that the run skipped, except those contacted earlier. */
  skipped: number;
  /** Number of recipients that the run skipped because they were contacted earlier; absent if there are none. */
  contacted?: number;
  failed: number;
  /** Ids of the attempts whose outcome is unknown. */
  doubts: string[];
  /** Positions of the first failed or doubtful messages. */
  wrong: number[];
  /** Positions of the first skipped recipients. */
  skips: number[];
  /** Positions of the first messages that the run sent, at most {@link POSITIONS_MAX}. */
  sends: number[];
}

/**
 * Trouble of a channel: dispatches that were given up, or are in doubt, for the same cause; or a time in which the
 * channel was late and sent nothing.
 */
export interface NewsTrouble extends NewsCount {
  readonly kind: "dead" | "in_doubt" | "late";
  readonly channel: ChannelName;
  /**
   * Lane (queue of a channel) of the first dispatch that was given up or is in doubt; null if the trouble is that the
   * whole channel sent nothing for a while.
   */
  readonly lane: Lane | null;
  /** The network's words about the first dispatch; for a channel that is late, why it sent nothing. */
  cause: string;
  /**
   * True while a late channel still sends nothing, so the trouble continues. Always false for dead letters and
   * dispatches in doubt.
   */
  isOpen: boolean;
  /**
   * True if the time in which the webhook was late ended because the webhook was unsubscribed. The news then does not
   * say that it works again.
   */
  isRemoved?: boolean;
  /** True if the network refused the channel as a whole. */
  isSuspended: boolean;
}

/**
 * Counts within a quarter of an hour, for the daily totals in the news. The other totals, of sent messages and clicks,
 * come from other projections.
 */
export interface NewsSums {
  replies: number;
  dead: number;
  in_doubt: number;
}

/** Operators' decisions on dead letters within a quarter of an hour. */
interface LetterDecisions {
  retried: number;
  discarded: number;
}

/**
 * Numbers and positions of the last days' events, from which the console's list of news is made. Holds nothing
 * personal.
 */
export interface News {
  /** Counts of single events by quarter of an hour and {@link newsKind}. */
  quarters: Quarters<Map<string, NewsCount>>;
  runs: Map<string, NewsRun>;
  /**
   * Troubles of channels by kind, channel and cause. If a later trouble has the same key, the position of the earlier
   * one's first event is appended to the earlier key.
   */
  troubles: Map<string, NewsTrouble>;
  sums: Quarters<NewsSums>;
  decisions: Quarters<LetterDecisions>;
}

/** Maximum number of event positions kept for one line in the list of news. No line shows more events than this. */
export const POSITIONS_MAX = 10;

/**
 * Maximum time between two events of one trouble of a channel, in ms. After a longer time, an event begins a new
 * trouble.
 */
export const TROUBLE_GAP_MS = 3_600_000;

/** Maximum number of runs that the news keep, and of troubles of channels, such as dispatches that failed. */
const KEPT_MAX = 1_000;

/**
 * Number of the oldest runs, or of the oldest troubles of channels, that are dropped at once when {@link KEPT_MAX} of
 * them are kept.
 */
const DROPPED = 100;

const CAUSE_CHARACTERS = 120;

/**
 * Event types for which the console's list of news has a line for a single event, or a line with the number of similar
 * events.
 */
const COUNTED = [
  "RecipientAdded",
  "ConsentRecorded",
  "RecipientSuppressed",
  "RecipientHeld",
  "RecipientReleased",
  "RecipientRetryAllowed",
  "DirectMessageReceived",
  "DirectMessageLeft",
  "MessagesLookedUp",
  "RunRefused",
  "CampaignCreated",
  "CampaignChanged",
  "CampaignEnded",
  "LinkAdded",
  "ConversionRecorded",
  "ConversionReversed",
  "ChannelTestRequested",
  "DispatchRetryRequested",
  "DispatchDiscarded",
  "DispatchSettled",
  "DispatchLost",
  "ChannelResumed",
  "WebhookSubscribed",
  "WebhookUnsubscribed",
  "AccountAuthorized",
  "AccountUnlinked",
  "TokenRefreshFailed",
  "AuthenticationsFailed",
  "KeyRotated",
  "LogVerified",
  "LogRestored",
  "LogLossAccepted",
  "LogTimeCorrected",
  "BackupMade",
  "BackupRehearsed",
  "EventsArchived",
  "PersonForgotten",
  "PersonalKeysLost",
] as const satisfies readonly EventType[];

export const news: Projection<News> = {
  name: "news",
  version: 7,
  types: [
    ...COUNTED,
    "RunStarted",
    "RunPaused",
    "RunStopRequested",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "RunFinished",
    "RunAbandoned",
    "DryRunFinished",
    "DispatchInDoubt",
    "DispatchAbandoned",
    "CircuitOpened",
    "CircuitClosed",
    "ChannelSuspended",
  ],
  initial: () => ({ quarters: new Map(), runs: new Map(), troubles: new Map(), sums: new Map(), decisions: new Map() }),
  evolve(state, event) {
    evolveNews(state, event);
    return state;
  },
};

function evolveNews(state: News, event: Folded): void {
  const at = msOf(event.time);
  switch (event.type) {
    case "RunStarted":
      return start(state, event, at);
    case "RunPaused":
    case "RunStopRequested":
    case "DirectMessageSent":
    case "DirectMessageSkipped":
    case "DirectMessageFailed":
    case "DirectMessageInDoubt":
    case "RunFinished":
    case "RunAbandoned":
    case "DryRunFinished": {
      const run = state.runs.get(event.data.run_id);
      if (run !== undefined) evolveRun(run, event, at);
      break;
    }
    case "DispatchAbandoned":
    case "DispatchInDoubt": {
      const kind = event.type === "DispatchAbandoned" ? "dead" : "in_doubt";
      const { channel, lane, requests } = event.data;
      for (const { sources, status, detail: cause } of requests) {
        const count = countPositions(sources);
        addTrouble(state, { kind, channel, lane, cause, status, count, position: event.position, at });
        sumsAt(state, at)[kind] += count;
      }
      return;
    }
    case "CircuitOpened":
    case "ChannelSuspended": {
      const { channel } = event.data;
      const isSuspended = event.type === "ChannelSuspended";
      const cause = event.type === "ChannelSuspended" ? event.data.detail : `${event.data.failures} failures in a row`;
      const trouble = addTrouble(state, {
        kind: "late",
        channel,
        lane: null,
        cause,
        count: 1,
        position: event.position,
        at,
      });
      trouble.isOpen = true;
      if (!isSuspended) return;
      trouble.isSuspended = true;
      trouble.cause = cause.slice(0, CAUSE_CHARACTERS);
      return;
    }
    case "CircuitClosed":
      return recover(state, event.data.channel, event.position, at);
    case "ChannelResumed":
      recover(state, event.data.channel, event.position, at);
      break;
    case "WebhookUnsubscribed":
      recover(state, event.data.channel ?? "webhook", event.position, at, true);
      break;
    case "DirectMessageReceived":
      sumsAt(state, at).replies++;
      break;
    case "DispatchRetryRequested":
    case "DispatchDiscarded":
      decideLetter(state, event, at);
      break;
    default:
  }
  const kind = newsKind(event);
  if (kind !== undefined) count(recentQuarterAt(state.quarters, at, noKinds), kind, event.position, at);
}

/**
 * Returns the kind under which the news count an event together with similar ones. Undefined if the news do not count
 * events of this kind.
 */
function newsKind({ type, data }: Folded): string | undefined {
  switch (type) {
    case "RecipientSuppressed":
      return `${type}:${data.reason}`;
    case "RecipientRetryAllowed":
      return data.run_id === undefined ? type : undefined;
    case "DirectMessageSent":
      return data.settled_by === "operator" ? `${type}:operator` : undefined;
    case "LinkAdded":
      return data.template === undefined ? type : undefined;
    case "DispatchRetryRequested":
    case "DispatchDiscarded":
    case "DispatchSettled":
      return `${type}:${data.channel}`;
    case "ChannelResumed":
      return data.why === "by_hand" ? type : undefined;
    case "TokenRefreshFailed":
      return data.dead ? type : undefined;
    case "LogVerified":
      return data.result === "broken" ? `${type}:broken` : type;
    default:
      return COUNTED_TYPES.has(type) ? type : undefined;
  }
}

const COUNTED_TYPES: ReadonlySet<EventType> = new Set(COUNTED);

function noKinds(): Map<string, NewsCount> {
  return new Map();
}

function count(kinds: Map<string, NewsCount>, kind: string, position: number, at: number): void {
  const known = kinds.get(kind);
  if (known === undefined) {
    kinds.set(kind, { count: 1, first: at, last: at, positions: [position] });
    return;
  }
  known.count++;
  known.last = at;
  keep(known.positions, position);
}

function keep(positions: number[], position: number): void {
  if (positions.length < POSITIONS_MAX) positions.push(position);
}

function start({ runs }: News, { data }: Folded<"RunStarted">, at: number): void {
  const { run_id, dry_run, rules } = data;
  if (runs.has(run_id)) return;
  makeRoom(runs);
  const template = rules?.template_name ?? rules?.template ?? null;
  const counts = { sent: 0, skipped: 0, failed: 0, doubts: [], wrong: [], skips: [], sends: [] };
  runs.set(run_id, { dry_run, template, first: at, last: at, end: null, ended: null, ...counts });
}

type RunEvent = Folded<
  | "RunPaused"
  | "RunStopRequested"
  | "DirectMessageSent"
  | "DirectMessageSkipped"
  | "DirectMessageFailed"
  | "DirectMessageInDoubt"
  | "RunFinished"
  | "RunAbandoned"
  | "DryRunFinished"
>;

function evolveRun(run: NewsRun, event: RunEvent, at: number): void {
  // An outcome that is found out after the run's end belongs to the run, but does not prolong it.
  if (run.end === null) run.last = at;
  switch (event.type) {
    case "DirectMessageSent":
      settle(run, event.data.attempt_id);
      run.sent++;
      return keep(run.sends, event.position);
    case "DirectMessageFailed":
      settle(run, event.data.attempt_id);
      run.failed++;
      return keep(run.wrong, event.position);
    case "DirectMessageSkipped":
      if (event.data.reason === "already_contacted") run.contacted = (run.contacted ?? 0) + 1;
      else run.skipped++;
      return keep(run.skips, event.position);
    case "DirectMessageInDoubt":
      if (run.doubts.includes(event.data.attempt_id)) return;
      run.doubts.push(event.data.attempt_id);
      return keep(run.wrong, event.position);
    case "DryRunFinished": {
      const { would_send, would_skip, skips, reason } = event.data;
      const contacted = skips?.["already_contacted"] ?? 0;
      if (contacted > 0) run.contacted = contacted;
      run.sent = would_send;
      run.skipped = would_skip - contacted;
      return end(run, reason, event.position);
    }
    case "RunFinished":
      return end(run, event.data.reason, event.position);
    case "RunAbandoned":
      return end(run, "abandoned", event.position);
    default:
  }
}

function end(run: NewsRun, reason: NewsRun["end"], position: number): void {
  run.end ??= reason;
  run.ended ??= position;
}

function settle(run: NewsRun, attemptId: string): void {
  if (run.doubts.length > 0) run.doubts = run.doubts.filter((id) => id !== attemptId);
}

interface Troubled extends Pick<NewsTrouble, "kind" | "channel" | "lane" | "cause" | "count"> {
  readonly status?: number | undefined;
  readonly position: number;
  readonly at: number;
}

function addTrouble({ troubles }: News, { position, at, status, count: more, ...what }: Troubled): NewsTrouble {
  const { kind, channel, cause } = what;
  const key = troubleKey(kind, channel, `${status ?? ""} ${cause}`);
  const known = troubles.get(key);
  if (known !== undefined && (known.isOpen || at - known.last <= TROUBLE_GAP_MS)) {
    known.count += more;
    known.last = at;
    keep(known.positions, position);
    return known;
  }
  if (known !== undefined) {
    troubles.delete(key);
    troubles.set(`${key} ${known.positions[0]}`, known);
  }
  makeRoom(troubles);
  const counts = { count: more, first: at, last: at, positions: [position] };
  const short = cause.slice(0, CAUSE_CHARACTERS);
  const trouble = { ...what, ...counts, cause: short, isOpen: false, isSuspended: false };
  troubles.set(key, trouble);
  return trouble;
}

/**
 * Returns the key of a channel's newest trouble with this cause. Numbers and ids in the cause are replaced by `#`, so
 * that failures which differ only in these share a key.
 */
function troubleKey(kind: NewsTrouble["kind"], channel: ChannelName, cause: string): string {
  const words = kind === "late" ? "" : cause.slice(0, CAUSE_CHARACTERS).replaceAll(/(?<= )\S*\d\S*/g, "#");
  return `${kind} ${channel} ${words}`;
}

/** Drops the oldest entries of a full map. */
function makeRoom(entries: Map<string, unknown>): void {
  if (entries.size < KEPT_MAX) return;
  for (const key of entries.keys()) {
    if (entries.size <= KEPT_MAX - DROPPED) break;
    entries.delete(key);
  }
}

/**
 * Ends a channel's open trouble `late` in the news, and adds the event to it, once the channel sends again or is
 * removed. Does nothing if no such trouble is open.
 */
function recover(state: News, channel: ChannelName, position: number, at: number, isRemoved = false): void {
  const late = state.troubles.get(troubleKey("late", channel, ""));
  if (late?.isOpen !== true) return;
  late.isOpen = false;
  if (isRemoved) late.isRemoved = true;
  late.last = at;
  keep(late.positions, position);
}

function decideLetter(
  { decisions }: News,
  { type, data }: Folded<"DispatchRetryRequested" | "DispatchDiscarded">,
  at: number,
): void {
  if ("in_doubt" in data) return;
  quarterAt(decisions, at, noDecisions)[type === "DispatchDiscarded" ? "discarded" : "retried"]++;
}

export function noDecisions(): LetterDecisions {
  return { retried: 0, discarded: 0 };
}

function sumsAt({ sums }: News, at: number): NewsSums {
  return quarterAt(sums, at, noSums);
}

export function noSums(): NewsSums {
  return { replies: 0, dead: 0, in_doubt: 0 };
}
