import type { DataOf, Folded } from "../events/catalog.ts";
import type { Projection } from "./projection.ts";
import { quarterAt, type Quarters } from "./quarters.ts";
import { dropOldest, type Recent } from "./recent-links.ts";
import { linkKey, linksOf } from "./sent-links.ts";
import { msOf } from "./time.ts";

/** `clicks`: not of bots; `suspected` are among them. */
export interface SuspectedCounts {
  clicks: number;
  bots: number;
  suspected: number;
}

/** One message of ours that holds links. */
interface Send {
  /** When it was attempted and, once the network has taken it, when that was recorded; ms since 1970. */
  at: number[];
  /** Its outcome is not known yet. */
  open: boolean;
  /** How many more clicks of each of its links may be taken for the network's. */
  left: Map<string, number>;
}

/** A click that is judged at once, or with a later event. */
export interface JudgedClick {
  /** Of the link, by which the projection counts it. */
  name: string;
  /** ms since 1970. */
  at: number;
  /** As of the event. */
  visitor?: number;
}

/** The last request for a link that was just sent. */
interface Burst {
  /** ms since 1970. */
  at: number;
  /** The click that is suspected if another one follows; null where that is settled. */
  waiting: JudgedClick | null;
}

/** What the rule looks back at. */
export interface Fetches {
  /** Attempt -> its message, while clicks may be due to it. */
  sends: Map<string, Send>;
  /** Link -> in how many of `sends` it is: most clicks are on a link that is in none. */
  sent: Map<string, number>;
  /** Link -> the last request for it, the oldest first. */
  bursts: Map<string, Burst>;
}

/** Takes the verdicts on clicks; one that is not suspected is cleared. */
export interface Verdicts {
  onSuspected(click: JudgedClick): void;
  onCleared?(click: JudgedClick): void;
}

export interface Suspected extends Fetches {
  all: SuspectedCounts;
  /** When the clicks came. */
  quarters: Quarters<SuspectedCounts>;
  /** As `linkKey` writes it -> its clicks. */
  links: Map<string, SuspectedCounts & Recent>;
  /** Clicks of links that fell out of `links`. */
  others: SuspectedCounts;
}

/** X's fetchers come within seconds of a message; people take longer to notice it, open it, read it and tap. */
export const FETCH_MS = 10_000;

/** The fetchers are started together, so that their requests come close to each other; one person taps once. */
export const BURST_GAP_MS = 2_000;

/** X was seen to make "several" requests a link: beyond these, people get the benefit of the doubt. */
export const SUSPECTED_PER_SEND = 5;

/** Messages remembered at once. One is in flight at a time, so only a defect could leave more. */
export const SENDS_MAX = 100;

/**
 * Which clicks are likely those of X itself: it fetches each link that a direct message holds, once as TwitterBot and
 * several times under the names of ordinary browsers. A click is suspected when
 *
 * 1. it is not a bot's,
 * 2. a message with its link was attempted, or taken by the network, at most {@link FETCH_MS} before it,
 * 3. so it was before another request for the link, of a bot or not, that came at most {@link BURST_GAP_MS} before or
 *    after it, with no other request for the link between the two,
 * 4. and of the messages of 2 one has not brought {@link SUSPECTED_PER_SEND} suspected clicks of that link yet; the
 *    oldest such message counts it.
 *
 * Both moments of 2 count, since X is asked between the two, and a message may wait long for its turn. When a message
 * that a look-up found was sent is unknown. A change of the rule needs a new version: then all clicks are judged again.
 */
export const suspected: Projection<Suspected> = {
  name: "suspected",
  version: 6,
  types: ["LinkClicked", "DirectMessageAttempted", "DirectMessageSent", "DirectMessageFailed", "DirectMessageInDoubt"],
  initial: () => ({
    all: noClicks(),
    quarters: new Map(),
    links: new Map(),
    others: noClicks(),
    ...noFetches(),
  }),
  evolve(state, event) {
    evolveSuspected(state, event);
    return state;
  },
};

function evolveSuspected(state: Suspected, event: Folded): void {
  if (event.type === "LinkClicked") click(state, event.data, event);
  else noteMessage(state, event, createVerdicts(state));
}

function createVerdicts({ links, all, quarters }: Suspected): Verdicts {
  return {
    onSuspected({ name, at }) {
      const counts = links.get(name);
      if (counts === undefined) return;
      counts.suspected++;
      all.suspected++;
      quarterAt(quarters, at, noClicks).suspected++;
    },
  };
}

function click(
  state: Suspected,
  { bot, domain, short_code }: DataOf<"LinkClicked">,
  { position, time }: Pick<Folded, "position" | "time">,
): void {
  const link = linkKey(domain, short_code);
  const known = state.links.get(link);
  const counts = known ?? { ...noClicks(), last_position: 0 };
  const kind = bot ? "bots" : "clicks";
  const at = msOf(time);
  counts[kind]++;
  state.all[kind]++;
  quarterAt(state.quarters, at, noClicks)[kind]++;
  counts.last_position = position;
  if (known === undefined) state.links.set(link, counts);
  if (state.sent.has(link)) judgeRequest(state, { link, bot, click: { name: link, at } }, createVerdicts(state));
  if (known === undefined) dropOldLinks(state);
}

export function noFetches(): Fetches {
  return { sends: new Map(), sent: new Map(), bursts: new Map() };
}

/** Notes a message that is attempted, and its outcome; all other events leave `fetches` as they are. */
export function noteMessage(fetches: Fetches, event: Folded, verdicts: Verdicts): void {
  switch (event.type) {
    case "DirectMessageAttempted":
      forget(fetches, msOf(event.time), verdicts);
      return attempt(fetches, event.data, msOf(event.time));
    case "DirectMessageSent": {
      const { attempt_id, settled_by } = event.data;
      const send = fetches.sends.get(attempt_id);
      if (send?.open === true && settled_by === "answer") send.at.push(msOf(event.time));
      return close(send);
    }
    case "DirectMessageFailed":
    case "DirectMessageInDoubt":
      return close(fetches.sends.get(event.data.attempt_id));
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
  for (const link of left.keys()) fetches.sent.set(link, (fetches.sent.get(link) ?? 0) + 1);
  for (const oldest of fetches.sends.keys()) {
    if (fetches.sends.size <= SENDS_MAX) break;
    drop(fetches, oldest);
  }
}

function drop({ sends, sent }: Fetches, id: string): void {
  for (const link of sends.get(id)?.left.keys() ?? []) {
    const others = (sent.get(link) ?? 0) - 1;
    if (others > 0) sent.set(link, others);
    else sent.delete(link);
  }
  sends.delete(id);
}

/** Later outcomes are of messages that were in doubt: they come at any time. */
function close(send: Send | undefined): void {
  if (send !== undefined) send.open = false;
}

interface LinkRequest {
  /** As `linkKey` writes it. */
  readonly link: string;
  readonly bot: boolean;
  readonly click: JudgedClick;
}

/** Judges a request for a link, and the click that waited for another request. */
export function judgeRequest(fetches: Fetches, { link, bot, click }: LinkRequest, verdicts: Verdicts): void {
  const { bursts } = fetches;
  forget(fetches, click.at, verdicts);
  if (sendsBefore(fetches, link, click.at).length === 0) {
    if (!bot) verdicts.onCleared?.(click);
    return;
  }
  const before = bursts.get(link);
  const isBurst = before !== undefined && click.at - before.at <= BURST_GAP_MS;
  if (isBurst && before.waiting !== null) suspect(fetches, link, before.waiting, verdicts);
  if (isBurst && !bot) suspect(fetches, link, click, verdicts);
  // In the order of the last request. Few links are asked for so soon after a message that they are moved cheaply.
  bursts.delete(link);
  bursts.set(link, { at: click.at, waiting: isBurst || bot ? null : click });
}

function suspect(fetches: Fetches, link: string, click: JudgedClick, verdicts: Verdicts): void {
  const send = sendsBefore(fetches, link, click.at).find(({ left }) => (left.get(link) ?? 0) > 0);
  if (send === undefined) return verdicts.onCleared?.(click);
  send.left.set(link, (send.left.get(link) ?? 0) - 1);
  verdicts.onSuspected(click);
}

/** The messages whose fetchers may have come at that time, the oldest first. */
function sendsBefore({ sends, sent }: Fetches, link: string, at: number): readonly Send[] {
  if (!sent.has(link)) return [];
  return [...sends.values()].filter(
    (send) => send.left.has(link) && send.at.some((time) => time <= at && at - time <= FETCH_MS),
  );
}

/** Forgets what cannot be asked for any more: the last click that waits is as old as a gap. */
function forget(fetches: Fetches, now: number, verdicts: Verdicts): void {
  const { sends, bursts } = fetches;
  for (const [id, { at, open }] of sends) {
    if (!open && now - (at.at(-1) ?? 0) > FETCH_MS + BURST_GAP_MS) drop(fetches, id);
  }
  for (const [link, { at, waiting }] of bursts) {
    if (now - at <= BURST_GAP_MS) break;
    bursts.delete(link);
    if (waiting !== null) verdicts.onCleared?.(waiting);
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
