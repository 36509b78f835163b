import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { LANES } from "../../../events/channel-and-lane-names.ts";
import type { LetterStatus } from "../../../projections/dead-letters.ts";
import type { OpenAttempt } from "../../../projections/current-run.ts";
import { findChannel } from "../../../projections/deliveries.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import {
  listBacklogs,
  readBacklog,
  readUndelivered,
  type ChannelBacklog,
  type UndeliveredGroup,
} from "../../delivery/channel-backlog-and-undelivered.ts";
import { readOldestPending } from "../../delivery/channel-lag.ts";
import type { Severity } from "../../history/news-severity-and-words.ts";
import { capitalize } from "../../history/event-sentences.ts";
import { mention, other, quote, say, type Sentence } from "../../history/sentences/sentence-parts.ts";
import { STREAMS } from "../../log/event-log.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import { newestEvents, type PageMoment, type ReadMoment } from "../../projector/moment-of-console-page.ts";
import { readDecided } from "./recent-operator-decisions.ts";

const SEVERITIES: readonly Severity[] = ["critical", "error", "warning"];

/** The action by which an operator settles an item of the attention list, with the data that its form or link needs. */
export type AttentionAct =
  | { readonly kind: "authorize" | "inspect" | "read_replies" | "wait" }
  | { readonly kind: "resume" | "late"; readonly backlog: ChannelBacklog }
  | { readonly kind: "retry" | "settle"; readonly group: UndeliveredGroup }
  | MessagesAct;

interface MessagesAct {
  readonly kind: "messages";
  readonly count: number;
  /** The recipients in words, such as `to @ada and 2 others`. */
  readonly to: Sentence;
  readonly canLookUp: boolean;
}

/** An item of the attention list: a fault or question that waits for an operator. */
export interface AttentionItem {
  readonly severity: Severity;
  readonly title: string;
  /**
   * Time at which the fault arose, or the question that the operator must settle (such as if a message has arrived),
   * ISO 8601. Undefined if unknown.
   */
  readonly since: string | undefined;
  /**
   * Time at which the newest of the item's dispatches was given up or became in doubt, ISO 8601. Absent if the item is
   * not about such dispatches.
   */
  readonly to?: string;
  /** Why the item needs an operator, in the network's own words if the log has them. */
  readonly cause: Sentence;
  /** Advice to the operator, beginning with a verb. */
  readonly todo: string;
  readonly act: AttentionAct;
}

/** State that only the running process knows, as no event records it: a wrong clock, and a lookup in progress. */
interface LiveState {
  clockFault(): string | undefined;
  lookup(): { readonly caller: string | undefined; readonly started_at: string } | undefined;
}

interface AttentionSettings {
  readonly timezone: string;
  recognisesMs(channel: ChannelBacklog["name"]): number;
}

type Reads = "account" | "deliveries" | "run";
type AttentionMoment = ReadMoment<Reads>;

/** Reads the items that wait for an operator, and the decisions that operators made in the last 15 minutes. */
export async function readAttention(
  moment: PageMoment<Reads>,
  settings: AttentionSettings,
  live: LiveState | undefined,
) {
  return { open: await readOpenItems(moment, settings, live), decided: await readDecided(moment) };
}

/** Reads the items that wait for an operator: the most severe first, and among equally severe ones the oldest first. */
export async function readOpenItems(
  moment: AttentionMoment,
  settings: AttentionSettings,
  live: LiveState | undefined,
): Promise<readonly AttentionItem[]> {
  const { timezone, recognisesMs } = settings;
  const { lists } = await readUndelivered(moment, {
    timezone,
    recognisesMs,
    readText: () => undefined,
    readCursor: () => "",
  });
  const undelivered = lists.flatMap(({ status, groups }) => groups.map((group) => toUndelivered(group, status)));
  const items = [
    ...readBroken(moment),
    ...readClock(live),
    ...(await readAuthorization(moment)),
    ...readSuspended(moment),
    ...(await readLate(moment)),
    ...undelivered,
    ...(await readMessages(moment, live)),
    ...readHeld(moment),
  ];
  const rank = ({ severity }: AttentionItem): number => SEVERITIES.indexOf(severity);
  return items.sort(
    (one, another) => rank(one) - rank(another) || (one.since ?? LAST).localeCompare(another.since ?? LAST),
  );
}

/** Stands for an unknown time when items are sorted by time: it sorts after every ISO 8601 time. */
const LAST = "~";

function readBroken({ verified }: AttentionMoment): AttentionItem[] {
  if (verified?.data.result !== "broken") return [];
  const { broken_position: at, fault = "a hash differs" } = verified.data;
  return [
    {
      severity: "critical",
      title: at === undefined ? "The log does not fit" : `The log does not fit at position ${at}`,
      since: verified.time,
      cause: say`The verification found: ${quote(fault)}`,
      todo: "Compare the log with a backup before you trust it.",
      act: { kind: "inspect" },
    },
  ];
}

function readClock(live: LiveState | undefined): AttentionItem[] {
  const fault = live?.clockFault();
  if (fault === undefined) return [];
  const todo = "Set the machine's clock. Runs start again by themselves.";
  return [
    { severity: "critical", title: "The clocks differ too much", since: undefined, cause: [fault], todo, act: WAIT },
  ];
}

const WAIT: AttentionAct = { kind: "wait" };

async function readAuthorization(moment: AttentionMoment): Promise<AttentionItem[]> {
  const { user, authorized } = moment.state("account");
  if (user === null || authorized) return [];
  const [failed] = (await newestEvents(moment, {
    types: ["TokenRefreshFailed"],
    limit: 1,
  })) as readonly Recorded<"TokenRefreshFailed">[];
  const why = failed === undefined ? [] : say`Its access could not be renewed: ${quote(failed.data.reason)}. `;
  return [
    {
      severity: "critical",
      title: "X no longer accepts our authorization",
      since: failed?.time,
      cause: say`${why}No run can start until this is solved; clicks and deliveries are not affected.`,
      todo: `Sign in to X as @${user.username}. Nothing is lost.`,
      act: { kind: "authorize" },
    },
  ];
}

function readSuspended({ state }: AttentionMoment): AttentionItem[] {
  const deliveries = state("deliveries");
  return Object.keys(deliveries).flatMap((name): AttentionItem[] => {
    const backlog = readBacklog(deliveries, name as ChannelBacklog["name"]);
    const { suspended, title, pending } = backlog;
    if (suspended === null) return [];
    return [
      {
        severity: "error",
        title: `${title} is suspended`,
        since: suspended.since,
        cause: say`${other(suspended.network)} refused the channel: ${quote(suspended.detail)} ${countInWords(pending, "dispatch waits", "dispatches wait")}.`,
        todo: `Correct it at ${suspended.network}, then resume ${title}.`,
        act: { kind: "resume", backlog },
      },
    ];
  });
}

/** Maximum age of a channel's oldest waiting dispatch in ms, after which an operator is warned if none is delivered. */
const LATE_MS = 5 * 60_000;

/** Maximum number of events read to find a channel's oldest waiting dispatch. */
const LATE_EVENTS_MAX = 1_000;

/** Maximum number of a channel's newest outcomes read to find out if anything was delivered, and why not. */
const LATE_OUTCOMES_MAX = 100;

/** Finds the channels to which nothing was delivered since their oldest waiting dispatch was requested. */
async function readLate(moment: AttentionMoment): Promise<AttentionItem[]> {
  const { store, state, position, now } = moment;
  const items: AttentionItem[] = [];
  for (const backlog of listBacklogs(state("deliveries"))) {
    const { name, title, suspended, pending } = backlog;
    if (suspended !== null || pending === 0) continue;
    const { lanes } = findChannel(state("deliveries"), name);
    const tail = { to: position, eventsMax: LATE_EVENTS_MAX };
    const times = LANES.map((lane) => readOldestPending(store, name, lane, lanes[lane], tail));
    const [since] = (await Promise.all(times)).filter((time) => time !== undefined).toSorted();
    if (since === undefined || now - msOf(since) <= LATE_MS) continue;
    const types = ["DispatchSucceeded", "DispatchFailed"];
    const query = { stream: STREAMS.delivery(name), types, limit: LATE_OUTCOMES_MAX };
    const ended = (await newestEvents(moment, query)).filter(({ time }) => time >= since);
    if (ended.some(({ type }) => type === "DispatchSucceeded")) continue;
    const failed = ended.find((event) => event.type === "DispatchFailed");
    const detail = failed?.type === "DispatchFailed" ? failed.data.requests[0]?.detail : undefined;
    items.push({
      severity: "warning",
      title: `${title} does not get ${countInWords(pending, "waiting dispatch", "waiting dispatches")}`,
      since,
      cause:
        detail === undefined ? ["No attempt was made since."] : say`The last attempt failed with ${quote(detail)}.`,
      todo: `Check the setup and the network of ${title}. What waits is sent once it works.`,
      act: { kind: "late", backlog },
    });
  }
  return items;
}

function toUndelivered(group: UndeliveredGroup, status: LetterStatus): AttentionItem {
  const { backlog, count, from, to, detail, doubles, attempts } = group;
  const { title, suspended, recent } = backlog;
  const [what, them] = [countInWords(count, "dispatch", "dispatches"), count === 1 ? "it" : "them"];
  const cause =
    attempts > 1
      ? say`All ${attempts} tries failed, the last with ${quote(detail)}.`
      : say`The only try failed with ${quote(detail)}.`;
  const item = { since: from, to, cause };
  if (status === "in_doubt") {
    const doubt = `${what} may or may not have reached ${title}`;
    const todo = `Look for ${them} at ${title}, then decide.`;
    return { ...item, severity: "warning", title: doubt, todo, act: { kind: "settle", group } };
  }
  const risk =
    doubles === 0
      ? "None arrived, so retrying cannot create duplicates."
      : `${doubles} of ${count} may have arrived, and retrying these can create duplicates.`;
  const works = recent.entries().some(([start, { delivered }]) => delivered > 0 && start >= msOf(to));
  const advice =
    suspended !== null
      ? `Resume ${title} first.`
      : works
        ? `Retry ${them}: ${title} accepts messages again.`
        : `Retry ${them} once ${title} works again.`;
  const act: AttentionAct = { kind: "retry", group };
  return { ...item, severity: "error", title: `${title} did not take ${what}`, todo: `${advice} ${risk}`, act };
}

/** Maximum number of newest events read to say why a message is in doubt: records of doubts, and of lookups at X. */
const DOUBTS_READ = 100;

async function readMessages(moment: AttentionMoment, live: LiveState | undefined): Promise<AttentionItem[]> {
  const { current, open } = moment.state("run");
  const inDoubt = [...open].filter(([, attempt]) => attempt.in_doubt);
  const [oldest] = inDoubt;
  if (oldest === undefined) return [];
  const events = await newestEvents(moment, {
    types: ["DirectMessageInDoubt", "MessagesLookedUp"],
    limit: DOUBTS_READ,
  });
  const [[id, { recipient, doubted_at }]] = [oldest];
  const doubt = events.find((event) => event.type === "DirectMessageInDoubt" && event.data.attempt_id === id);
  const looked = events.find(({ type }) => type === "MessagesLookedUp");
  const detail = doubt?.type === "DirectMessageInDoubt" ? say` ${quote(doubt.data.detail)}` : [];
  const others = inDoubt.length === 1 ? [] : say` and ${countInWords(inDoubt.length - 1, "other")}`;
  const to = say`to ${mention(recipient)}${others}`;
  const again =
    looked?.type === "MessagesLookedUp" && looked.data.detail !== undefined && looked.time > (doubted_at ?? "")
      ? say` A lookup did not settle it: ${quote(looked.data.detail)}`
      : [];
  const running = live?.lookup();
  const by = running?.caller === undefined ? "" : `, for ${running.caller}`;
  const todo =
    running !== undefined
      ? `Wait a minute or two: X is being asked${by}.`
      : current === null
        ? "Look it up at X. It is not sent again unless you decide so."
        : "Wait for the end of the run: it looks this up itself.";
  return [
    {
      severity: "warning",
      title: `${countInWords(inDoubt.length, "message")} may or may not have arrived`,
      since: oldestDoubt(inDoubt.map(([, attempt]) => attempt)),
      cause: say`${capitalize(to)}.${detail}${again}`,
      todo,
      act: { kind: "messages", count: inDoubt.length, to, canLookUp: running === undefined && current === null },
    },
  ];
}

function oldestDoubt(attempts: readonly OpenAttempt[]): string | undefined {
  return attempts.map(({ doubted_at, attempted_at }) => doubted_at ?? attempted_at).sort()[0];
}

function readHeld(moment: AttentionMoment): AttentionItem[] {
  const contacts = moment.asOf === undefined && moment.hasNow("contacts") ? moment.stateNow("contacts") : undefined;
  if (contacts === undefined || contacts.held === 0) return [];
  const unread = Iterator.from(contacts.people.values()).reduce((sum, { held, held_unread }) => {
    return held && held_unread === true ? sum + 1 : sum;
  }, 0);
  const item = { severity: "warning", since: undefined, act: { kind: "read_replies" } } as const;
  const unclear: AttentionItem = {
    ...item,
    title: `${countInWords(contacts.held - unread, "reply", "replies")} may ask to be left alone`,
    cause: ["The words are unclear, so these people get no message for now."],
    todo: "Read the replies at X, then release or suppress the senders.",
  };
  const encrypted: AttentionItem = {
    ...item,
    title: `${countInWords(unread, "person", "people")} replied in X Chat`,
    cause: ["X Chat is encrypted: the words are not readable here, so these people get no message for now."],
    todo: "Read them in X's own app, then release or suppress the senders.",
  };
  return [...(contacts.held > unread ? [unclear] : []), ...(unread > 0 ? [encrypted] : [])];
}
