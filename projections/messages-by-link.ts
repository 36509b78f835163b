import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";
import { dropOldest, type Recent } from "./drop-oldest-links.ts";
import { linksOf, toLinkKey } from "./link-keys-and-text-links.ts";

/** The template and the variant that a message was made from. */
interface Origin {
  /** Id of the template; empty for messages from before templates were recorded. */
  readonly template: string;
  /** Name of the variant: `A`, `B` … */
  readonly variant: string;
}

/** Messages that a click on one link may come from. */
export interface Referrers extends Recent {
  /** Number of messages with the link that the network accepted. */
  messages: number;
  /** Number of messages with the link made from each variant, in the order in which the variants were first sent. */
  variants: (Origin & { messages: number })[];
  /** Positions of the intents to send the newest messages with the link, the oldest first. */
  newest: number[];
}

interface OpenMessage extends Origin {
  /** Position of the event that records the intent to send the message. */
  readonly position: number;
  readonly links: readonly string[];
}

export interface SentLinks {
  /** Messages that held a link, by the link as `linkKey` writes it. */
  links: Map<string, Referrers>;
  /** Messages with links that are neither sent nor failed yet, by the id of the intent to send the message. */
  open: Map<string, OpenMessage>;
}

/** Maximum number of messages that are kept for a link: the newest ones, as many as one page shows. */
export const NEWEST_MAX = 50;

/**
 * Projection of the messages that contain each of the newest links. If only one message contains a link, its clicks
 * come from the recipient, or from people who got the link from them.
 */
export const referrers: Projection<SentLinks> = {
  name: "referrers",
  version: 3,
  types: ["DirectMessageAttempted", "DirectMessageSent", "DirectMessageFailed"],
  initial: () => ({ links: new Map(), open: new Map() }),
  evolve(state, event) {
    evolveReferrers(state, event);
    return state;
  },
};

function evolveReferrers(state: SentLinks, event: Folded): void {
  switch (event.type) {
    case "DirectMessageAttempted":
      return attempt(state, event.data, event.position);
    case "DirectMessageSent":
      return take(state, event.data.attempt_id, event.position);
    case "DirectMessageFailed":
      state.open.delete(event.data.attempt_id);
      return;
    default:
  }
}

function attempt({ open }: SentLinks, data: DataOf<"DirectMessageAttempted">, position: number): void {
  const { attempt_id, template = "", variant, replaced_links = [] } = data;
  const replaced = new Set(replaced_links.map(toLinkKey));
  const links = linksOf(data).filter((link) => !replaced.has(link));
  if (links.length > 0) open.set(attempt_id, { position, links, template, variant });
}

function take({ links, open }: SentLinks, attemptId: string, sentAt: number): void {
  const message = open.get(attemptId);
  if (message === undefined) return;
  open.delete(attemptId);
  for (const link of message.links) add(links, link, message, sentAt);
}

function add(links: SentLinks["links"], link: string, message: OpenMessage, sentAt: number): void {
  const known = links.get(link);
  const found = known ?? { messages: 0, variants: [], newest: [], last_position: 0 };
  const { template, variant, position } = message;
  const same = found.variants.find((one) => one.template === template && one.variant === variant);
  if (same === undefined) found.variants.push({ template, variant, messages: 1 });
  else same.messages++;
  found.messages++;
  found.newest.push(position);
  if (found.newest.length > NEWEST_MAX) found.newest.shift();
  found.last_position = sentAt;
  if (known !== undefined) return;
  links.set(link, found);
  dropOldest(links, () => {});
}
