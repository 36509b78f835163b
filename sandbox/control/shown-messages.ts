import type { Network } from "../network.ts";
import type { Recorded } from "../recorded.ts";
import type { World } from "../world.ts";

/** A message as the chat's members see it. */
export interface ShownMessage {
  /** Its number among all messages of its kind, from 1. */
  readonly number: number;
  readonly text: string;
  /** ms since the epoch. */
  readonly at: number;
  /** Descriptions of the parts that are not plain text. */
  readonly notes: readonly string[];
}

/** A part of the messages of one kind, oldest first. */
export interface MessagePage<Message> {
  readonly messages: readonly Message[];
  /** Number of all messages that ever arrived. */
  readonly total: number;
  /** True if the first of these messages is the oldest that is kept. */
  readonly isOldest: boolean;
}

/** Returns the newest messages, or the newest before `before`. */
export function toMessagePage<Item, Message>(
  { total, kept }: Recorded<Item>,
  { limit, before = total + 1 }: { readonly limit: number; readonly before?: number | undefined },
  show: (item: Item, number: number) => Message,
): MessagePage<Message> {
  const dropped = total - kept.length;
  const end = Math.min(kept.length, Math.max(0, before - 1 - dropped));
  const start = Math.max(0, end - limit);
  const messages = kept.slice(start, end).map((item, at) => show(item, dropped + start + at + 1));
  return { messages, total, isOldest: start === 0 };
}

/** Number of messages that a network ever received; events for Meta. */
export function arrivedAt(world: World, network: Network): number {
  if (network === "meta") return world.meta.events.total;
  if (network === "x") return world.x.messages.total;
  return chatMessages(world, network, { limit: 0 }).total;
}

export type ChatNetwork = Exclude<Network, "x" | "meta">;

/** Messages as the members of a network's chat see them: the newest, or those before a given one. */
export function chatMessages(
  world: World,
  network: ChatNetwork,
  part: { readonly limit: number; readonly before?: number | undefined },
): MessagePage<ShownMessage> {
  switch (network) {
    case "slack":
      return toMessagePage(world.slack.messages, part, formatted);
    case "discord":
      return toMessagePage(world.discord.messages, part, ({ text, at, marks, pings, embeds }, number) => {
        const effects = [...(pings ? ["notifies people"] : []), ...(embeds ? ["shows a preview of the link"] : [])];
        return { number, text, at, notes: [...formatNotes(marks), ...effects] };
      });
    case "google_chat":
      return toMessagePage(world.googleChat.messages, part, rendered);
    case "teams":
      return toMessagePage(world.teams.messages, part, rendered);
    case "telegram":
      return toMessagePage(world.telegram.messages, part, formatted);
    case "line":
      return toMessagePage(world.line.messages, part, ({ text, at }, number) => ({ number, text, at, notes: [] }));
    case "whatsapp":
      return toMessagePage(world.whatsapp.messages, part, formatted);
  }
}

interface Formatted {
  readonly marks: readonly string[];
  readonly at: number;
}

/** `shown` is the part of the text that readers see. */
function formatted({ shown, marks, at }: Formatted & { readonly shown: string }, number: number): ShownMessage {
  return { number, text: shown, at, notes: formatNotes(marks) };
}

function rendered({ text, marks, at }: Formatted & { readonly text: string }, number: number): ShownMessage {
  return { number, text, at, notes: formatNotes(marks) };
}

function formatNotes(marks: readonly string[]): readonly string[] {
  return marks.length === 0 ? [] : [`formatted: ${[...new Set(marks)].join(", ")}`];
}
