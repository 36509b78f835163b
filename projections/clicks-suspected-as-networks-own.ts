import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";
import { quarterAt, recentQuarterAt, type Quarters } from "./count-by-quarter-hour.ts";
import { dropOldest, type Recent } from "./drop-oldest-links.ts";
import { linkKey, linksOf } from "./link-keys-and-text-links.ts";
import { msOf } from "./parse-log-times.ts";

/**
 * Counts of clicks. `clicks` excludes those of bots and includes `suspected` ones, which are likely the network's own.
 */
export interface SuspectedCounts {
  clicks: number;
  bots: number;
  suspected: number;
}

/** Message of ours that holds links. */
interface Send {
  /**
   * Times at which the message was attempted and at which its acceptance was recorded, in ms since 1970. The latter is
   * absent for a message that a look-up found.
   */
  at: number[];
  /** True until the log records an outcome of the message. A doubt about it counts as one. */
  open: boolean;
  /** Number of further clicks that may be taken for the network's, for each link of the message. */
  left: Map<string, number>;
}

/** Click that is judged at once, or with a later event: a person's, or suspected to be the network's. */
export interface JudgedClick {
  /** Name by which the projection counts the link that was clicked. */
  name: string;
  /** Time of the click in ms since 1970. */
  at: number;
  /**
   * Number derived from a hash of the click's visitor, which updates the estimate of the link's visitors on that day.
   */
  visitor?: number;
}

/** The most recent request for a link that one of our latest messages contains. */
interface Burst {
  /** Time of the request in ms since 1970. */
  at: number;
  /**
   * Click that becomes suspected if another request for the link follows soon. Null if the last request needs no
   * further judgement.
   */
  waiting: JudgedClick | null;
}

/** Link in a recent message of ours, whose clicks may be requests of the network itself. */
interface SentLink {
  /** Number of recent messages that hold the link. */
  sends: number;
  /** Time at which one of the messages was last attempted or accepted by the network, in ms since 1970. */
  at: number;
  /**
   * Ids of the intents of the messages that still have fewer than {@link SUSPECTED_PER_SEND} suspected clicks of the
   * link, the oldest first. {@link suspect} counts the next suspected click for one of them.
   */
  open: string[];
}

/**
 * Recent messages, and the last requests for their links. They show if a click was likely a request of the network,
 * which fetches the links of a message itself.
 */
export interface Fetches {
  /**
   * Messages so recent that clicks on their links may be the network's own requests, by the id of the intent to send
   * the message.
   */
  sends: Map<string, Send>;
  /**
   * Links of the messages in `sends`. Most clicked links are not among them, so for most clicks one lookup here is
   * enough.
   */
  sent: Map<string, SentLink>;
  /** Last request for each link, the oldest first. */
  bursts: Map<string, Burst>;
}

/**
 * Functions that record in a state whether a click was found to be suspected (likely the network's own request) or
 * cleared.
 */
export interface Verdicts<State extends Fetches> {
  onSuspected(state: State, click: JudgedClick): void;
  onCleared?(state: State, click: JudgedClick): void;
}

export interface Suspected extends Fetches {
  all: SuspectedCounts;
  /** Counts of clicks by the quarter of an hour of the click. */
  quarters: Quarters<SuspectedCounts>;
  /** Counts of each link's clicks, by the link as `linkKey` writes it. */
  links: Map<string, SuspectedLink>;
  /** Counts of the links that were dropped from `links`, together. */
  others: SuspectedCounts;
  /** Counts of each link's clicks in the last days, by the quarter of an hour of the click. */
  recent: Quarters<RecentClicks>;
}

interface SuspectedLink extends SuspectedCounts, Recent {
  /** Numbers of suspected clicks by the quarter of an hour of the click. Absent if there are none. */
  suspected_at?: Quarters<{ suspected: number }>;
}

/** Clicks within a quarter of an hour, by link. */
export interface RecentClicks {
  /** Time of the first click, in ms since 1970. */
  readonly first: number;
  /** Time of the last click, in ms since 1970. */
  last: number;
  links: Map<string, RecentLink>;
  /** Counts of the links beyond {@link RECENT_LINKS_MAX}, together. */
  others: SuspectedCounts;
}

export interface RecentLink extends SuspectedCounts {
  /** Time of the first click by a bot, in ms since 1970; 0 if there is none. */
  bots_first: number;
  /** Time of the last click by a bot, in ms since 1970; 0 if there is none. */
  bots_last: number;
}

/** Maximum number of links counted separately in one quarter of an hour. */
export const RECENT_LINKS_MAX = 100;

/**
 * Time after a message in which X's fetchers request its links, in ms. They come within seconds; people take longer to
 * notice the message, open it, read it and tap.
 */
export const FETCH_MS = 10_000;

/**
 * Maximum time between two requests of X's fetchers for one link, in ms. The fetchers start together, so their requests
 * come close to each other; one person taps once.
 */
export const BURST_GAP_MS = 2_000;

/**
 * Maximum number of suspected clicks on a link for one message. X was seen to make "several" requests a link; further
 * clicks are taken for people's.
 */
export const SUSPECTED_PER_SEND = 5;

/**
 * Maximum number of recent messages kept to recognize the networks' own fetches of their links. A message is dropped
 * seconds after its outcome, so only a defect or very fast sending fills the limit.
 */
export const SENDS_MAX = 100;

/**
 * Counts the clicks that are likely X's own: it fetches each link of a direct message, once as TwitterBot and several
 * times under the names of ordinary browsers. {@link judgeRequest} has the rule; a change of it needs a new version.
 */
export const suspected: Projection<Suspected> = {
  name: "suspected",
  version: 10,
  types: ["LinkClicked", "DirectMessageAttempted", "DirectMessageSent", "DirectMessageFailed", "DirectMessageInDoubt"],
  initial: () => ({
    all: noClicks(),
    quarters: new Map(),
    links: new Map(),
    others: noClicks(),
    recent: new Map(),
    ...noFetches(),
  }),
  evolve(state, event) {
    evolveSuspected(state, event);
    return state;
  },
};

function evolveSuspected(state: Suspected, event: Folded): void {
  if (event.type === "LinkClicked") click(state, event);
  else noteMessage(state, event, VERDICTS);
}

const VERDICTS: Verdicts<Suspected> = {
  onSuspected({ links, all, quarters, recent }, { name, at }) {
    const counts = links.get(name);
    if (counts === undefined) return;
    counts.suspected++;
    counts.suspected_at ??= new Map();
    quarterAt(counts.suspected_at, at, () => ({ suspected: 0 })).suspected++;
    all.suspected++;
    quarterAt(quarters, at, noClicks).suspected++;
    const quarter = recentQuarterAt(recent, at, () => noRecentClicks(at));
    (quarter.links.get(name) ?? quarter.others).suspected++;
  },
};

function click(state: Suspected, { position, time, data }: Folded<"LinkClicked">): void {
  const { bot, domain, short_code } = data;
  const link = linkKey(domain, short_code);
  const known = state.links.get(link);
  const counts: SuspectedLink = known ?? { ...noClicks(), last_position: 0 };
  const kind = bot ? "bots" : "clicks";
  const at = msOf(time);
  counts[kind]++;
  state.all[kind]++;
  quarterAt(state.quarters, at, noClicks)[kind]++;
  countRecent(state.recent, link, kind, at);
  counts.last_position = position;
  if (known === undefined) state.links.set(link, counts);
  if (state.sent.has(link)) judgeRequest(state, { link, bot, click: { name: link, at } }, VERDICTS);
  if (known === undefined) dropOldLinks(state);
}

function countRecent(recent: Suspected["recent"], name: string, kind: "bots" | "clicks", at: number): void {
  const quarter = recentQuarterAt(recent, at, () => noRecentClicks(at));
  quarter.last = at;
  let link = quarter.links.get(name);
  if (link === undefined) {
    if (quarter.links.size === RECENT_LINKS_MAX) {
      quarter.others[kind]++;
      return;
    }
    link = { ...noClicks(), bots_first: 0, bots_last: 0 };
    quarter.links.set(name, link);
  }
  link[kind]++;
  if (kind === "clicks") return;
  if (link.bots_first === 0) link.bots_first = at;
  link.bots_last = at;
}

function noRecentClicks(at: number): RecentClicks {
  return { first: at, last: at, links: new Map(), others: noClicks() };
}

export function noFetches(): Fetches {
  return { sends: new Map(), sent: new Map(), bursts: new Map() };
}

/** Records a message that is attempted, and its outcome; all other events leave `state` unchanged. */
export function noteMessage<State extends Fetches>(state: State, event: Folded, verdicts: Verdicts<State>): void {
  switch (event.type) {
    case "DirectMessageAttempted":
      forgetRequests(state, msOf(event.time), verdicts);
      forgetMessages(state, msOf(event.time));
      return attempt(state, event.data, msOf(event.time));
    case "DirectMessageSent": {
      const { attempt_id, settled_by } = event.data;
      const send = state.sends.get(attempt_id);
      if (send?.open === true && settled_by === "answer") accept(state, send, msOf(event.time));
      return close(send);
    }
    case "DirectMessageFailed":
    case "DirectMessageInDoubt":
      return close(state.sends.get(event.data.attempt_id));
    default:
  }
}

function attempt(fetches: Fetches, data: DataOf<"DirectMessageAttempted">, now: number): void {
  const { attempt_id } = data;
  const links = linksOf(data);
  if (links.length === 0) return;
  const left = new Map(links.map((link) => [link, SUSPECTED_PER_SEND]));
  drop(fetches, attempt_id);
  fetches.sends.set(attempt_id, { at: [now], open: true, left });
  for (const name of left.keys()) {
    const link = fetches.sent.getOrInsertComputed(name, () => ({ sends: 0, at: now, open: [] }));
    link.sends++;
    link.at = now;
    link.open.push(attempt_id);
  }
  for (const oldest of fetches.sends.keys()) {
    if (fetches.sends.size <= SENDS_MAX) break;
    drop(fetches, oldest);
  }
}

/** Records that the network accepted a message. */
function accept({ sent }: Fetches, send: Send, at: number): void {
  send.at.push(at);
  for (const link of send.left.keys()) sent.get(link)!.at = at;
}

function drop({ sends, sent }: Fetches, id: string): void {
  for (const name of sends.get(id)?.left.keys() ?? []) {
    const link = sent.get(name)!;
    link.sends--;
    if (link.sends === 0) sent.delete(name);
    else removeOpen(link, id);
  }
  sends.delete(id);
}

function removeOpen({ open }: SentLink, id: string): void {
  const at = open.indexOf(id);
  if (at !== -1) open.splice(at, 1);
}

/** Records that a message has an outcome: it was sent, it failed, or it is in doubt. */
function close(send: Send | undefined): void {
  if (send !== undefined) send.open = false;
}

interface LinkRequest {
  /** Name of the requested link, as `linkKey` writes it. */
  readonly link: string;
  readonly bot: boolean;
  readonly click: JudgedClick;
}

/**
 * Judges a link's request, and the click before it that had no verdict yet. A person's click is suspected if the
 * previous or next request is at most {@link BURST_GAP_MS} away and {@link isSoonAfter} holds for both.
 */
export function judgeRequest<State extends Fetches>(
  state: State,
  { link, bot, click }: LinkRequest,
  verdicts: Verdicts<State>,
): void {
  const { bursts, sent } = state;
  forgetRequests(state, click.at, verdicts);
  const { at: sentAt = -Infinity } = sent.get(link) ?? {};
  if (!isSoonAfter(sentAt, click.at)) {
    if (!bot) verdicts.onCleared?.(state, click);
    return;
  }
  const before = bursts.get(link);
  const isBurst = before !== undefined && click.at - before.at <= BURST_GAP_MS;
  if (isBurst && before.waiting !== null) suspect(state, link, before.waiting, verdicts);
  if (isBurst && !bot) suspect(state, link, click, verdicts);
  // Keeps `bursts` in the order of the last request. Few links are requested so soon after a message that the move is
  // cheap.
  bursts.delete(link);
  bursts.set(link, { at: click.at, waiting: isBurst || bot ? null : click });
}

/**
 * Counts the click as suspected for the oldest message with fewer than {@link SUSPECTED_PER_SEND} suspected clicks of
 * the link; if there is none, clears the click.
 */
function suspect<State extends Fetches>(state: State, name: string, click: JudgedClick, verdicts: Verdicts<State>) {
  const link = state.sent.get(name);
  for (const id of link?.open ?? []) {
    const { at, left } = state.sends.get(id)!;
    if (!at.some((time) => isSoonAfter(time, click.at))) continue;
    const rest = left.get(name)! - 1;
    left.set(name, rest);
    if (rest === 0) removeOpen(link!, id);
    return verdicts.onSuspected(state, click);
  }
  verdicts.onCleared?.(state, click);
}

/**
 * True if a click comes at most {@link FETCH_MS} after `time`, when a message was attempted or accepted. The caller
 * tests both times, because X gets the message between them, and a message may wait long before it is sent.
 */
function isSoonAfter(time: number, at: number): boolean {
  return time <= at && at - time <= FETCH_MS;
}

/** Drops messages that are too old: a later click on their links is not taken for a request of the network. */
function forgetMessages(fetches: Fetches, now: number): void {
  for (const [id, { at, open }] of fetches.sends) {
    if (!open && now - (at.at(-1) ?? 0) > FETCH_MS + BURST_GAP_MS) drop(fetches, id);
  }
}

/**
 * Drops old requests for links. If a click still waits for a second request after {@link BURST_GAP_MS}, it is recorded
 * as not suspected, which means that it is not taken for the network's own request.
 */
function forgetRequests<State extends Fetches>(state: State, now: number, verdicts: Verdicts<State>): void {
  if (state.bursts.size === 0) return;
  for (const [link, { at, waiting }] of state.bursts) {
    if (now - at <= BURST_GAP_MS) break;
    state.bursts.delete(link);
    if (waiting !== null) verdicts.onCleared?.(state, waiting);
  }
}

function dropOldLinks({ links, others, bursts }: Suspected): void {
  dropOldest(links, (counts) => {
    others.clicks += counts.clicks;
    others.bots += counts.bots;
    others.suspected += counts.suspected;
  });
  for (const [link, { waiting }] of bursts) if (waiting !== null && !links.has(waiting.name)) bursts.delete(link);
}

export function noClicks(): SuspectedCounts {
  return { clicks: 0, bots: 0, suspected: 0 };
}
