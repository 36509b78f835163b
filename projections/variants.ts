import type { DataOf, Folded } from "../events/catalog.ts";
import type { Recipient } from "../events/outreach.ts";
import type { Clicks } from "./clicks.ts";
import type { Projection } from "./projection.ts";
import type { SentLinks } from "./referrers.ts";
import type { Suspected } from "./suspected.ts";

/** What came of one variant of one template. */
export interface VariantResults {
  /** The id of its template; empty for messages of before templates were recorded. */
  template: string;
  /** `A`, `B` … */
  variant: string;
  attempted: number;
  sent: number;
  failed: number;
  /** Of those neither sent nor failed: it may have arrived. */
  in_doubt: number;
  /** People who wrote to us after its message, each once. */
  replied: number;
  /** People who asked us to stop after its message, each once. */
  opted_out: number;
}

/** A message to a person, and what the person did since. */
interface Message {
  /** Which of `groups` it belongs to. A number, because there is one for each recipient ever contacted. */
  group: number;
  /** When the intent was recorded, ISO 8601: what the person wrote before is no reply. */
  at: string;
  /** Lower case. */
  username: string;
  replied: boolean;
  opted_out: boolean;
}

interface OpenMessage extends Message {
  /** The person's. */
  id: string;
  in_doubt: boolean;
}

/** Results of every variant, and what is needed to know a reply to one. */
export interface Variants {
  /** In the order in which they were first used. */
  groups: VariantResults[];
  /** Attempt -> its message, until it is sent or failed. */
  open: Map<string, OpenMessage>;
  /** Network id -> the message that was last sent to that person. */
  sent: Map<string, Message>;
}

export const variants: Projection<Variants> = {
  name: "variants",
  version: 1,
  types: [
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "DirectMessageReceived",
    "RecipientSuppressed",
  ],
  initial: () => ({ groups: [], open: new Map(), sent: new Map() }),
  evolve(state, event) {
    evolveVariants(state, event);
    return state;
  },
};

function evolveVariants(state: Variants, event: Folded): void {
  switch (event.type) {
    case "DirectMessageAttempted":
      return attempt(state, event.data, event.time);
    case "DirectMessageInDoubt":
      return doubt(state, event.data.attempt_id);
    case "DirectMessageSent":
      return settle(state, event.data.attempt_id, "sent");
    case "DirectMessageFailed":
      return settle(state, event.data.attempt_id, "failed");
    case "DirectMessageReceived": {
      const { recipient, received_at } = event.data;
      return react(state, recipient, "replied", received_at);
    }
    case "RecipientSuppressed":
      if (event.data.reason === "opt_out") react(state, event.data.recipient, "opted_out", event.time);
      return;
    default:
  }
}

function attempt(state: Variants, data: DataOf<"DirectMessageAttempted">, at: string): void {
  const { attempt_id, recipient, template = "", variant } = data;
  const group = groupOf(state, template, variant);
  resultsOf(state, group).attempted++;
  const { id } = recipient;
  const username = recipient.username.toLowerCase();
  state.open.set(attempt_id, { id, group, at, username, replied: false, opted_out: false, in_doubt: false });
}

/** What is known of the clicks on a variant's links. */
export interface VariantClicks {
  readonly clicks: number;
  /** People who clicked; undefined where several people got the same link. */
  readonly people: number | undefined;
}

/**
 * Clicks on the links that only this variant's messages hold; undefined where it has none, as when all variants share one.
 * `clicksOf`: how often people clicked a link.
 */
export function clicksOfVariant(
  { links }: SentLinks,
  { template, variant }: VariantResults,
  clicksOf: (link: string) => number,
): VariantClicks | undefined {
  const own = [...links].filter(
    ([, { variants: made }]) => made.length === 1 && made[0]?.template === template && made[0].variant === variant,
  );
  if (own.length === 0) return undefined;
  const counts = own.map(([link]) => clicksOf(link));
  const isOnePersons = own.every(([, { messages }]) => messages === 1);
  return {
    clicks: counts.reduce((sum, count) => sum + count, 0),
    people: isOnePersons ? counts.filter((count) => count > 0).length : undefined,
  };
}

/** How often people clicked a link, as far as links are told apart. */
export function clicksByPeople(clicks: Clicks, suspected: Suspected): (link: string) => number {
  return (link) => (clicks.links.get(link)?.clicks ?? 0) - (suspected.links.get(link)?.suspected ?? 0);
}

function groupOf({ groups }: Variants, template: string, variant: string): number {
  const known = groups.findIndex((results) => results.template === template && results.variant === variant);
  if (known !== -1) return known;
  const counts = { attempted: 0, sent: 0, failed: 0, in_doubt: 0, replied: 0, opted_out: 0 };
  return groups.push({ template, variant, ...counts }) - 1;
}

function resultsOf({ groups }: Variants, group: number): VariantResults {
  const results = groups[group];
  if (results === undefined) throw new Error(`there is no group ${group}`);
  return results;
}

function doubt(state: Variants, attemptId: string): void {
  const message = state.open.get(attemptId);
  if (message === undefined || message.in_doubt) return;
  message.in_doubt = true;
  resultsOf(state, message.group).in_doubt++;
}

function settle(state: Variants, attemptId: string, outcome: "sent" | "failed"): void {
  const message = state.open.get(attemptId);
  if (message === undefined) return;
  state.open.delete(attemptId);
  const results = resultsOf(state, message.group);
  results[outcome]++;
  if (message.in_doubt) results.in_doubt--;
  if (outcome === "failed") return;
  // What the person did while the outcome was not known counts from now on.
  const { id, group, at, username, replied, opted_out } = message;
  if (replied) results.replied++;
  if (opted_out) results.opted_out++;
  state.sent.set(id, { group, at, username, replied, opted_out });
}

/** A reaction to a message whose outcome is not known yet is counted once the message turns out to be sent. */
function react(state: Variants, who: Recipient, reaction: "replied" | "opted_out", time: string): void {
  for (const message of state.open.values()) {
    if (time >= message.at && isTo(message.id, message, who)) message[reaction] = true;
  }
  const message = sentTo(state, who);
  if (message === undefined || message[reaction] || time < message.at) return;
  message[reaction] = true;
  resultsOf(state, message.group)[reaction]++;
}

/** The last message sent to a person. */
function sentTo({ sent }: Variants, who: Recipient): Message | undefined {
  if (who.id !== undefined) return sent.get(who.id);
  // Rare enough to look through all of them: the network gives the id of each sender.
  let found: Message | undefined;
  for (const [id, message] of sent) {
    if (isTo(id, message, who) && (found === undefined || message.at >= found.at)) found = message;
  }
  return found;
}

function isTo(id: string, { username }: Message, who: Recipient): boolean {
  return who.id === undefined ? who.username?.toLowerCase() === username : who.id === id;
}
