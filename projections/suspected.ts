import type { DataOf, Folded } from "../events/catalog.ts";
import type { Projection } from "./projection.ts";
import { quarterAt, type Quarters } from "./quarters.ts";
import { dropOldest, type Recent } from "./recent-links.ts";
import { linkKey, linksOf } from "./sent-links.ts";
import { msOf } from "./time.ts";

/** `clicks` excludes those of bots and includes `suspected` ones. */
export interface SuspectedCounts {
  clicks: number;
  bots: number;
  suspected: number;
}

/** One message of ours that holds links. */
interface Send {
  /**
   * When it was attempted and, once the network has accepted it, when that was recorded; ms since 1970. The latter is
   * unknown for a message that a look-up found.
   */
  at: number[];
  /** True while its outcome is unknown. */
  open: boolean;
  /** Link -> how many more clicks may be taken for the network's. */
  left: Map<string, number>;
}

/** A click that is judged at once, or with a later event. */
export interface JudgedClick {
  /** The name by which the projection counts the link. */
  name: string;
  /** ms since 1970. */
  at: number;
  /** `visitor` of the event. */
  visitor?: number;
}

/** The last request for a link that was sent recently. */
interface Burst {
  /** ms since 1970. */
  at: number;
  /** The click that is suspected if another one follows; null if it is already judged. */
  waiting: JudgedClick | null;
}

/** The messages and requests that the rule looks back at. */
export interface Fetches {
  /** Attempt -> its message, while clicks may be due to it. */
  sends: Map<string, Send>;
  /** Link -> number of `sends` that contain it; most clicks are on a link that is in none. */
  sent: Map<string, number>;
  /** Link -> its last request, the oldest first. */
  bursts: Map<string, Burst>;
}

/** Receives the verdicts on clicks; one that is not suspected is cleared. */
export interface Verdicts {
  onSuspected(click: JudgedClick): void;
  onCleared?(click: JudgedClick): void;
}

export interface Suspected extends Fetches {
  all: SuspectedCounts;
  /** The counts by the time of the clicks. */
  quarters: Quarters<SuspectedCounts>;
  /** Link, as `linkKey` writes it -> its clicks. */
  links: Map<string, SuspectedCounts & Recent>;
  /** Clicks of links that were dropped from `links`. */
  others: SuspectedCounts;
}

/** X's fetchers come within seconds of a message; people take longer to notice it, open it, read it and tap. */
export const FETCH_MS = 10_000;

/** The fetchers start together, so their requests come close to each other; one person taps once. */
export const BURST_GAP_MS = 2_000;

/** X was seen to make "several" requests a link: further clicks are taken for people's. */
export const SUSPECTED_PER_SEND = 5;

/** Maximum number of messages remembered. One is in flight at a time, so only a defect could leave more. */
export const SENDS_MAX = 100;

/**
 * Counts the clicks that are likely X's own: it fetches each link of a direct message, once as TwitterBot and several
 * times under the names of ordinary browsers. {@link judgeRequest} has the rule; a change of it needs a new version.
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

/** Notes a message that is attempted, and its outcome; all other events leave `fetches` unchanged. */
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

/** Also closes a message in doubt: its final outcome may come at any time. */
function close(send: Send | undefined): void {
  if (send !== undefined) send.open = false;
}

interface LinkRequest {
  /** The link as `linkKey` writes it. */
  readonly link: string;
  readonly bot: boolean;
  readonly click: JudgedClick;
}

/**
 * Judges a request, and the click that waited for it. A click that is no bot's is suspected if the previous or next
 * request for its link, of a bot or not, is {@link BURST_GAP_MS} away at most and {@link sendsBefore} finds messages
 * for both.
 */
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
  // Keeps `bursts` in the order of the last request. Few links are requested so soon after a message that the move is
  // cheap.
  bursts.delete(link);
  bursts.set(link, { at: click.at, waiting: isBurst || bot ? null : click });
}

/**
 * The oldest message with fewer than {@link SUSPECTED_PER_SEND} suspected clicks of the link counts the click; if there
 * is none, the click is cleared.
 */
function suspect(fetches: Fetches, link: string, click: JudgedClick, verdicts: Verdicts): void {
  const send = sendsBefore(fetches, link, click.at).find(({ left }) => (left.get(link) ?? 0) > 0);
  if (send === undefined) return verdicts.onCleared?.(click);
  send.left.set(link, (send.left.get(link) ?? 0) - 1);
  verdicts.onSuspected(click);
}

/**
 * The messages attempted or accepted by the network at most {@link FETCH_MS} before a time, the oldest first. Both
 * moments count: X is asked between the two, and a message may wait long for its turn.
 */
function sendsBefore({ sends, sent }: Fetches, link: string, at: number): readonly Send[] {
  if (!sent.has(link)) return [];
  return [...sends.values()].filter(
    (send) => send.left.has(link) && send.at.some((time) => time <= at && at - time <= FETCH_MS),
  );
}

/** Forgets what no longer matters. A click that still waits after {@link BURST_GAP_MS} is cleared. */
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
