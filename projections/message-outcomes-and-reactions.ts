import { DEFAULT_CAMPAIGN } from "../events/campaign.ts";
import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { Recipient } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";
import { linksOf } from "./link-keys-and-text-links.ts";
import { FETCH_MS } from "./clicks-suspected-as-networks-own.ts";
import { msOf } from "./parse-log-times.ts";

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

/**
 * Message to a recipient, and the recipient's reactions to it. Events replace the object by a changed copy and store
 * their positions in it, so `rewindResults` can restore earlier states.
 */
export interface Message {
  /** Position of the event that recorded the intent to send the message. */
  readonly position: number;
  /** Id by which the outcomes of the message refer to that event. */
  readonly attempt_id: string;
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
  readonly outcome: "open" | "in_doubt" | "sent" | "failed";
  /** Position of the event that recorded the outcome `sent` or `failed`; 0 if there is none. */
  readonly settled: number;
  /** Key in `messages` of the previous message that was sent to the same recipient; -1 if there is none. */
  readonly superseded: number;
  /** Position of the event that put the outcome in doubt, and its time in ms since 1970; absent if none did. */
  readonly doubt?: { readonly position: number; readonly time: number } | undefined;
  /**
   * Position of the first event by which the network signalled that the recipient has read the message; 0 if that is
   * unknown.
   */
  readonly seen: number;
  /** Position of the first reply; 0 if there is none. */
  readonly replied: number;
  /** Position of the first opt-out after this message and before the recipient's next one; 0 if there is none. */
  readonly opted_out: number;
  /** Clicks of the message's recipient; null if the recipient did not grant tracking, or revoked it. */
  readonly tracked: TrackedClicks | null;
  /** Position of the event that revoked tracking, and the former `tracked`. The clicks in it are erased with their keys. */
  readonly revoked?: { readonly position: number; readonly tracked: TrackedClicks } | undefined;
}

export interface TrackedClicks {
  /** Codes of the recipient's own links. */
  readonly codes: readonly string[];
  /**
   * Time at which the message's intent or its last outcome was recorded, in ms since 1970. The network may fetch the
   * links right after that.
   */
  recorded: number;
  /** Time at which the network accepted the message, in ms since 1970; if that is unknown, the time of the attempt. */
  sent: number;
  /** Positions of the recipient's clicks. */
  readonly clicks: number[];
  /** Positions of clicks that are likely the network's own; they are never counted as the recipient's. */
  readonly suspected: number[];
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
  /** Changes of `templates`, in the order of the log. */
  named: (readonly [position: number, template: string, name: string])[];
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
   * Numbers (keys of `messages`) of the messages sent to this handle, by the handle in lower case, in the order of
   * sending.
   */
  handles: Map<string, readonly number[]>;
  /** Number of the message that contains a recipient's own link, by the link's code. */
  codes: Map<string, number>;
  /**
   * For each recipient whose clicks are or were tracked: the key (in `messages`) of the newest message with their own
   * links. The recipient's id and `@` with the handle are both keys of this map.
   */
  tracked: Map<string, number>;
}

/**
 * Projection of each message's outcome and of the recipient's reactions to it. Clicks are counted per recipient only on
 * the recipient's own links, and only if the recipient grants tracking.
 */
export const results: Projection<Results> = {
  name: "results",
  version: 8,
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
    named: [],
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
  const { position } = event;
  switch (event.type) {
    case "DirectMessageAttempted":
      return attempt(state, event);
    case "DirectMessageInDoubt":
      return doubt(state, event);
    case "DirectMessageSent":
      return send(state, event);
    case "DirectMessageFailed":
      return fail(state, event);
    case "DirectMessageReceived": {
      const { recipient, received_at } = event.data;
      return react(state, recipient, ["replied", position, received_at]);
    }
    case "DirectMessagesSeen":
      return react(state, event.data.recipient, ["seen", position, event.data.seen_at]);
    case "RecipientSuppressed": {
      const { recipient, reason, suppressed_at = event.time } = event.data;
      const isOwnWish = reason === "opt_out" || reason === "opt_out_page";
      if (recipient !== undefined && isOwnWish) react(state, recipient, ["opted_out", position, suppressed_at]);
      return;
    }
    case "RecipientAdded":
    case "ConsentRecorded": {
      const { recipient, tracking = "granted" } = event.data;
      if (tracking !== "granted") revokeTracking(state, recipient, position);
      return;
    }
    case "PersonalLinkClicked":
      return click(state, event);
    default:
  }
}

function attempt(state: Results, { position, time: at, data }: Folded<"DirectMessageAttempted">): void {
  const { attempt_id, recipient, personal_links = [] } = data;
  const { id } = recipient;
  const codes = personal_links.map(({ code }) => code);
  const earlier = state.tracked.get(id) ?? NONE;
  // A second message in the same campaign is a retry. It replaces the failed message, so its predecessor is the failed
  // message's predecessor.
  const isOther = isOfOther(state, earlier, data.campaign ?? DEFAULT_CAMPAIGN);
  const before = isOther ? earlier : state.messages.get(earlier)?.tracked?.before;
  const clicks = { clicks: [], suspected: [], first: null, ...(before === undefined ? {} : { before }) };
  const number = state.messages.size;
  state.messages.set(number, {
    position,
    attempt_id,
    group: groupNumber(state, data, position),
    at,
    id,
    username: recipient.username.toLowerCase(),
    links: linksOf(data).map((link) => linkNumber(state, link)),
    outcome: "open",
    settled: 0,
    superseded: NONE,
    seen: 0,
    replied: 0,
    opted_out: 0,
    tracked: codes.length === 0 ? null : { codes, recorded: msOf(at), sent: msOf(at), ...clicks },
  });
  indexAttempt(state, state.messages.get(number)!, number);
}

/**
 * Number of times that events have changed a message of each group, by the state's map of messages and the group's
 * index. The state does not include these numbers: they begin at 0 when a state is decoded or rewound.
 */
const CHANGES = new WeakMap<Results["messages"], number[]>();

/** Returns a number that grows each time an event changes a message of the group. */
export function countChanges({ messages }: Results, group: number): number {
  return CHANGES.get(messages)?.[group] ?? 0;
}

function noteChange({ messages }: Results, { group }: Message): void {
  const counts = CHANGES.getOrInsertComputed(messages, () => []);
  counts[group] = (counts[group] ?? 0) + 1;
}

/** Adds a message that has no outcome, or whose recipient's clicks are tracked, to the indexes by which events find it. */
export function indexAttempt({ open, codes, tracked }: Results, message: Message, number: number): void {
  if (message.settled === 0) open.set(message.attempt_id, number);
  for (const code of message.tracked?.codes ?? []) codes.set(code, number);
  if (message.tracked !== null || message.revoked !== undefined)
    for (const name of [message.id, `@${message.username}`]) tracked.set(name, number);
}

/** True if the message exists and belongs to another campaign than this one. */
function isOfOther(state: Results, number: number, campaign: string | undefined): boolean {
  return state.messages.has(number) && campaignIn(state, number) !== campaign;
}

function campaignIn({ groups, messages }: Results, number: number): string | undefined {
  return groups[messages.get(number)?.group ?? NONE]?.campaign;
}

function groupNumber({ groups, templates, named }: Results, data: Attempted, position: number): number {
  const { template = "", template_name, variant, run_id, source = null, basis = null } = data;
  const { campaign = DEFAULT_CAMPAIGN } = data;
  if (template_name !== undefined && templates.get(template) !== template_name) {
    templates.set(template, template_name);
    named.push([position, template, template_name]);
  }
  // Messages of one run are consecutive in the log and mostly belong to the same group (run, text, variant, source and
  // basis). So the search for the message's group begins with the newest group.
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

/**
 * Replaces a message by a copy with other `members`. The old object is not changed, because a rewound state may share
 * it.
 */
function change(state: Results, number: number, members: Partial<Message>): void {
  const message = { ...state.messages.get(number)!, ...members };
  state.messages.set(number, message);
  noteChange(state, message);
}

function doubt(state: Results, { position, time, data }: Folded<"DirectMessageInDoubt">): void {
  const number = state.open.get(data.attempt_id) ?? NONE;
  const message = state.messages.get(number);
  if (message?.outcome !== "open") return;
  change(state, number, { outcome: "in_doubt", doubt: { position, time: msOf(time) } });
  if (message.tracked !== null) message.tracked.recorded = msOf(time);
}

function send(state: Results, { position, time, data }: Folded<"DirectMessageSent">): void {
  const number = settle(state, data.attempt_id);
  if (number === undefined) return;
  const superseded = noteSent(state, number);
  change(state, number, { outcome: "sent", settled: position, superseded });
  const tracked = state.messages.get(number)?.tracked;
  if (tracked == null) return;
  tracked.recorded = msOf(time);
  if (data.settled_by === "answer") tracked.sent = tracked.recorded;
}

function fail(state: Results, { position, data }: Folded<"DirectMessageFailed">): void {
  const number = settle(state, data.attempt_id);
  if (number !== undefined) change(state, number, { outcome: "failed", settled: position });
}

/** Makes a message the last one sent to its recipient. Returns the number of the previous one; -1 if there is none. */
export function noteSent(state: Results, number: number): number {
  const { sent, handles, messages } = state;
  const { id, username } = messages.get(number)!;
  const before = sent.get(id) ?? NONE;
  // A message of another campaign was sent later and its outcome was known first. That message stays the last one sent
  // to the recipient.
  if (before > number && isOfOther(state, before, campaignIn(state, number))) return NONE;
  sent.set(id, number);
  handles.set(username, [...(handles.get(username) ?? []), number]);
  return before;
}

/**
 * Removes a message from the open ones because its final outcome is known, and returns its number; undefined if it is
 * already settled, because another instance recorded its outcome.
 */
function settle({ open }: Results, attemptId: string): number | undefined {
  const number = open.get(attemptId);
  open.delete(attemptId);
  return number;
}

/**
 * Records a recipient's reaction to a message. If the message's outcome is not known yet, the reaction counts once the
 * message turns out to be sent.
 */
function react(state: Results, who: Recipient, [reaction, position, time]: Reaction): void {
  const open = [...state.open.values()].filter((number) => isTo(state.messages.get(number)!, who));
  for (const number of [...open, findSent(state, who)]) {
    const message = state.messages.get(number);
    if (message?.[reaction] === 0 && time >= message.at) change(state, number, { [reaction]: position });
  }
}

/** Reaction of a recipient, the position of the event that reports it, and when it occurred (ISO 8601). */
type Reaction = readonly [reaction: "seen" | "replied" | "opted_out", position: number, time: string];

/** Returns the number of the last message sent to a recipient; -1 if there is none. */
function findSent({ sent, handles, messages }: Results, who: Recipient): number {
  if (who.id !== undefined) return sent.get(who.id) ?? NONE;
  let found = NONE;
  // All messages to the handle are searched, because few recipients ever have the same handle. The message with the
  // newest intent wins, even if its outcome became known earlier.
  for (const number of handles.get(who.username?.toLowerCase() ?? "") ?? []) {
    const message = messages.get(number)!;
    const isLast = sent.get(message.id) === number;
    if (isLast && message.at >= (messages.get(found)?.at ?? "")) found = number;
  }
  return found;
}

function isTo({ id, username }: Message, who: Recipient): boolean {
  return who.id === undefined ? who.username?.toLowerCase() === username : who.id === id;
}

/** Ends the record of the recipient's clicks. Later clicks count as those of unknown visitors. */
function revokeTracking(state: Results, who: Recipient, position: number): void {
  for (let number = findTrackedNumber(state, who); ;) {
    const tracked = state.messages.get(number)?.tracked;
    if (tracked == null) return;
    for (const code of tracked.codes) state.codes.delete(code);
    change(state, number, { tracked: null, revoked: { position, tracked } });
    number = tracked.before ?? NONE;
  }
}

function findTrackedNumber({ tracked }: Results, { id, username }: Recipient): number {
  return tracked.get(id ?? `@${username?.toLowerCase()}`) ?? NONE;
}

/**
 * Returns the clicks of a message's recipient on the recipient's own links in it. Undefined if the message has no such
 * links, or if the recipient does not permit tracking.
 */
export function findTracked(
  { codes, messages }: Results,
  { personal_links: [own] = [] }: Pick<Attempted, "personal_links">,
): TrackedClicks | undefined {
  return messages.get(codes.get(own?.code ?? "") ?? NONE)?.tracked ?? undefined;
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

function click(state: Results, { position, time, data }: Folded<"PersonalLinkClicked">): void {
  const message = state.messages.get(state.codes.get(data.code) ?? NONE);
  const tracked = message?.tracked;
  if (message === undefined || tracked == null) return;
  noteChange(state, message);
  const at = msOf(time);
  if (isFetch(message, at)) {
    tracked.suspected.push(position);
    return;
  }
  tracked.clicks.push(position);
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
