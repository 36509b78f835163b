import { DEFAULT_CAMPAIGN } from "../events/campaign.ts";
import type { DataOf, Folded } from "../events/catalog.ts";
import type { Recipient } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";
import { linksOf } from "./link-keys.ts";
import { FETCH_MS } from "./suspected-clicks.ts";
import { msOf } from "./time.ts";

type Attempted = DataOf<"DirectMessageAttempted">;

/** Number that no message has, for look-ups that find none. */
const NONE = -1;

/** Properties that all messages of one group share, such as the template, the variant and the run. */
export interface MessageGroup {
  /** Id of the template; empty for messages from before templates were recorded. */
  readonly template: string;
  /** Name of the variant: `A`, `B` … */
  readonly variant: string;
  readonly run_id: string;
  /** Campaign of the messages. */
  readonly campaign: string;
  /** Source in which the recipient was found; null if unknown, because older messages do not name it. */
  readonly source: NonNullable<Attempted["source"]> | null;
  readonly basis: NonNullable<Attempted["basis"]> | null;
}

/** Message to a recipient, and the recipient's reactions since. */
export interface Message {
  /**
   * Index of the message's group in `groups`. A number saves memory, because there is a message for each recipient ever
   * contacted.
   */
  readonly group: number;
  /**
   * Time at which the intent to send the message was recorded, ISO 8601. A message that the recipient wrote before it
   * is no reply.
   */
  readonly at: string;
  /** The recipient's network id. */
  readonly id: string;
  /** The recipient's handle in lower case. */
  readonly username: string;
  /** Numbers of the message's links in {@link Results.links}. */
  readonly links: readonly number[];
  outcome: "open" | "in_doubt" | "sent" | "failed";
  /** True if the network signalled that the recipient has read the message; false if that is unknown. */
  seen: boolean;
  replied: boolean;
  opted_out: boolean;
  /** Clicks of the message's recipient; null if the recipient did not grant tracking, or revoked it. */
  tracked: TrackedClicks | null;
}

interface TrackedClicks {
  /** Codes of the recipient's own links. */
  readonly codes: readonly string[];
  /**
   * Time at which the message's intent or its last outcome was recorded, in ms since 1970. The network may fetch the
   * links right after that.
   */
  recorded: number;
  /** Time at which the network accepted the message, in ms since 1970; if that is unknown, the time of the attempt. */
  sent: number;
  clicks: number;
  /** Number of clicks that are likely the network's own; they are never counted as the recipient's. */
  suspected: number;
  /**
   * Time of the first click that a person is likely to have made (not a bot), in ms since 1970; null if there is none.
   */
  first: number | null;
  /**
   * Key in `messages` of the recipient's earlier message with tracked clicks, of another campaign; absent if there is
   * none.
   */
  readonly before?: number;
}

/** Names that operators gave to templates. */
export interface TemplateNames {
  /** The name that an operator gave each template last, by the template's id. */
  templates: Map<string, string>;
}

/** Every message with its outcome. Sums are computed on request, since there are 100 messages a day at most. */
export interface Results extends TemplateNames {
  /** Groups of messages in the order of their first use. */
  groups: MessageGroup[];
  /** Numbers of the links, by the link as `linkKey` writes it. */
  links: Map<string, number>;
  /** Messages by their numbers, in the order in which they were attempted. */
  messages: Map<number, Message>;
  /**
   * Numbers (keys of `messages`) of the messages that are neither sent nor failed yet, by the id of the event that
   * recorded the intent to send.
   */
  open: Map<string, number>;
  /** Number of the last message sent to each recipient, by the recipient's network id. */
  sent: Map<string, number>;
  /**
   * Numbers (keys of `messages`) of the last messages to recipients who had this handle then, by the handle in lower
   * case, in the order of sending.
   */
  handles: Map<string, number[]>;
  /** Number of the message that contains a recipient's own link, by the link's code. */
  codes: Map<string, number>;
  /** Number of the message to each recipient with tracked clicks, by the recipient's id, and by `@` and the handle. */
  tracked: Map<string, number>;
}

/**
 * Projection of what became known after each message. Figures of single recipients come only from their own links, and
 * so only from those who granted tracking.
 */
export const results: Projection<Results> = {
  name: "results",
  version: 6,
  types: [
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "DirectMessageReceived",
    "DirectMessagesSeen",
    "RecipientSuppressed",
    "RecipientAdded",
    "ConsentRecorded",
    "PersonalLinkClicked",
  ],
  initial: () => ({
    groups: [],
    templates: new Map(),
    links: new Map(),
    messages: new Map(),
    open: new Map(),
    sent: new Map(),
    handles: new Map(),
    codes: new Map(),
    tracked: new Map(),
  }),
  evolve(state, event) {
    evolveResults(state, event);
    return state;
  },
};

function evolveResults(state: Results, event: Folded): void {
  switch (event.type) {
    case "DirectMessageAttempted":
      return attempt(state, event.data, event.time);
    case "DirectMessageInDoubt":
      return doubt(state, event.data.attempt_id, event.time);
    case "DirectMessageSent":
      return send(state, event.data, event.time);
    case "DirectMessageFailed":
      settle(state, event.data.attempt_id, "failed");
      return;
    case "DirectMessageReceived": {
      const { recipient, received_at } = event.data;
      return react(state, recipient, "replied", received_at);
    }
    case "DirectMessagesSeen":
      return react(state, event.data.recipient, "seen", event.data.seen_at);
    case "RecipientSuppressed": {
      const { recipient, reason, suppressed_at = event.time } = event.data;
      const isOwnWish = reason === "opt_out" || reason === "opt_out_page";
      if (recipient !== undefined && isOwnWish) react(state, recipient, "opted_out", suppressed_at);
      return;
    }
    case "RecipientAdded":
    case "ConsentRecorded": {
      const { recipient, tracking = "granted" } = event.data;
      if (tracking !== "granted") revokeTracking(state, recipient);
      return;
    }
    case "PersonalLinkClicked":
      return click(state, event.data.code, msOf(event.time));
    default:
  }
}

function attempt(state: Results, data: Attempted, at: string): void {
  const { attempt_id, recipient, personal_links = [] } = data;
  const { id } = recipient;
  const username = recipient.username.toLowerCase();
  const codes = personal_links.map(({ code }) => code);
  const number = state.messages.size;
  const earlier = state.tracked.get(id) ?? NONE;
  const before = isOfOther(state, earlier, data.campaign ?? DEFAULT_CAMPAIGN) ? { before: earlier } : {};
  const clicks = { clicks: 0, suspected: 0, first: null, ...before };
  state.messages.set(number, {
    group: groupNumber(state, data),
    at,
    id,
    username,
    links: linksOf(data).map((link) => linkNumber(state, link)),
    outcome: "open",
    seen: false,
    replied: false,
    opted_out: false,
    tracked: codes.length === 0 ? null : { codes, recorded: msOf(at), sent: msOf(at), ...clicks },
  });
  state.open.set(attempt_id, number);
  for (const code of codes) state.codes.set(code, number);
  if (codes.length > 0) for (const name of [id, `@${username}`]) state.tracked.set(name, number);
}

/** True if the message exists and belongs to another campaign than this one. */
function isOfOther(state: Results, number: number, campaign: string | undefined): boolean {
  return state.messages.has(number) && campaignIn(state, number) !== campaign;
}

function campaignIn({ groups, messages }: Results, number: number): string | undefined {
  return groups[messages.get(number)?.group ?? NONE]?.campaign;
}

function groupNumber({ groups, templates }: Results, data: Attempted): number {
  const { template = "", template_name, variant, run_id, source = null, basis = null } = data;
  const { campaign = DEFAULT_CAMPAIGN } = data;
  if (template_name !== undefined) templates.set(template, template_name);
  // Messages of one run follow each other, so the newest groups are searched first.
  const known = groups.findLastIndex(
    (group) =>
      group.run_id === run_id &&
      group.template === template &&
      group.variant === variant &&
      group.source === source &&
      group.basis === basis,
  );
  return known === -1 ? groups.push({ template, variant, run_id, campaign, source, basis }) - 1 : known;
}

function linkNumber({ links }: Results, link: string): number {
  const known = links.get(link);
  if (known !== undefined) return known;
  links.set(link, links.size);
  return links.size - 1;
}

function doubt({ messages, open }: Results, attemptId: string, time: string): void {
  const message = messages.get(open.get(attemptId) ?? NONE);
  if (message?.outcome !== "open") return;
  message.outcome = "in_doubt";
  if (message.tracked !== null) message.tracked.recorded = msOf(time);
}

function send(state: Results, { attempt_id, settled_by }: DataOf<"DirectMessageSent">, time: string): void {
  const number = state.open.get(attempt_id) ?? NONE;
  const message = settle(state, attempt_id, "sent");
  if (message === undefined) return;
  noteSent(state, message, number);
  const { tracked } = message;
  if (tracked === null) return;
  tracked.recorded = msOf(time);
  if (settled_by === "answer") tracked.sent = tracked.recorded;
}

function noteSent(state: Results, { id, username }: Message, number: number): void {
  const { sent, handles, messages } = state;
  const before = sent.get(id);
  // The outcome of an earlier campaign's message may become known after a newer one was sent.
  if (before !== undefined && before > number && isOfOther(state, before, campaignIn(state, number))) return;
  const former = before === undefined ? undefined : messages.get(before)?.username;
  const left = former === undefined ? [] : (handles.get(former) ?? []).filter((one) => one !== before);
  if (former !== undefined && left.length > 0) handles.set(former, left);
  else if (former !== undefined) handles.delete(former);
  sent.set(id, number);
  handles.getOrInsertComputed(username, () => []).push(number);
}

/**
 * Sets the final outcome of a message, and returns the message; undefined if it is already settled, because another
 * instance recorded its outcome.
 */
function settle({ messages, open }: Results, attemptId: string, outcome: "sent" | "failed"): Message | undefined {
  const message = messages.get(open.get(attemptId) ?? NONE);
  if (message === undefined) return undefined;
  message.outcome = outcome;
  open.delete(attemptId);
  return message;
}

/**
 * Records a recipient's reaction to a message. If the message's outcome is not known yet, the reaction counts once the
 * message turns out to be sent.
 */
function react(state: Results, who: Recipient, reaction: "seen" | "replied" | "opted_out", time: string): void {
  const sent = findSent(state, who);
  const open = [...state.open.values()].map((number) => state.messages.get(number)!).filter((one) => isTo(one, who));
  for (const message of sent === undefined ? open : [...open, sent]) if (time >= message.at) message[reaction] = true;
}

/** Returns the last message sent to a recipient. */
function findSent({ sent, handles, messages }: Results, who: Recipient): Message | undefined {
  if (who.id !== undefined) return messages.get(sent.get(who.id) ?? NONE);
  let found: Message | undefined;
  // Few recipients ever have the same handle, so all messages to a handle are searched. The newest intent counts, no
  // matter when its outcome became known.
  for (const number of handles.get(who.username?.toLowerCase() ?? "") ?? []) {
    const message = messages.get(number)!;
    if (found === undefined || message.at >= found.at) found = message;
  }
  return found;
}

function isTo({ id, username }: Message, who: Recipient): boolean {
  return who.id === undefined ? who.username?.toLowerCase() === username : who.id === id;
}

/** Deletes the record of the recipient's clicks. Later clicks count as those of unknown visitors. */
function revokeTracking(state: Results, who: Recipient): void {
  for (let message = findTracked(state, who); message != null && message.tracked !== null;) {
    const { codes, before } = message.tracked;
    for (const code of codes) state.codes.delete(code);
    message.tracked = null;
    message = state.messages.get(before ?? NONE);
  }
}

/** Returns the last message to a recipient that contained links of their own. */
export function findTracked({ messages, tracked }: Results, { id, username }: Recipient): Message | undefined {
  return messages.get(tracked.get(id ?? `@${username?.toLowerCase()}`) ?? NONE);
}

/**
 * Returns the name of a template, followed by its id if another template has the same name; the id alone if it has no
 * name.
 */
export function formatTemplate({ templates }: TemplateNames, id: string): string {
  const name = templates.get(id);
  if (name === undefined) return id;
  const isAlone = [...templates].every(([other, called]) => called !== name || other === id);
  return isAlone ? name : `${name} (${id})`;
}

function click({ messages, codes }: Results, code: string, at: number): void {
  const message = messages.get(codes.get(code) ?? NONE);
  const tracked = message?.tracked;
  if (message === undefined || tracked == null) return;
  if (isFetch(message, at)) {
    tracked.suspected++;
    return;
  }
  tracked.clicks++;
  tracked.first ??= at;
}

/** True if a request for a message's links at a time (ms since 1970) is likely the network's own. */
function isFetch({ outcome, tracked }: Message, at: number): boolean {
  const isReached = outcome === "sent" || outcome === "in_doubt";
  return !isReached || at - (tracked?.recorded ?? at) <= FETCH_MS;
}

/** True if a click on a recipient's own link was likely the network's own. */
export function isFetchOfOwn({ messages, codes }: Results, code: string, at: number): boolean {
  const message = messages.get(codes.get(code) ?? NONE);
  return message !== undefined && isFetch(message, at);
}
