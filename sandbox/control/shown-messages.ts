import type { Network } from "../network-origins-and-refusals.ts";
import type { Recorded } from "../record-received.ts";
import type { World } from "../world.ts";

/** A message as its readers see it, or an event as Meta counts it. */
export interface ShownMessage {
  /** Number of the message among all that its network received, from 1. */
  readonly number: number;
  readonly text: string;
  /** Time of the message, ms since the epoch. */
  readonly at: number;
  /**
   * Descriptions of the parts of a message other than plain text, such as mentions, for the sandbox's page that shows a
   * network's messages.
   */
  readonly notes: readonly string[];
  /** Author of the message; undefined if all messages of the network have the same author. */
  readonly author?: { readonly name: string; readonly isOwn: boolean };
}

/** Returns how many messages a network has received; for an ads network, how many events. */
export function arrivedAt(world: World, network: Network): number {
  if (network === "meta" || network === "openai" || network === "snap") return world[network].events.total;
  if (network === "google_chat") return world.googleChat.messages.total;
  return world[network].messages.total;
}

/** Returns a network's newest messages as readers in the chat see them; for Meta, its newest events. Oldest first. */
export function newestMessages(world: World, network: Exclude<Network, "x">, limit: number): readonly ShownMessage[] {
  switch (network) {
    case "meta":
      return newest(world.meta.events, limit, ({ event_name, event_id, event_time, event_source_url, user_data }) => ({
        text: `${event_name} ${event_source_url ?? ""}`,
        at: event_time * 1000,
        notes: [`id: ${event_id ?? "none"}`, `known of the person: ${Object.keys(user_data).join(", ")}`],
      }));
    case "openai":
      return newest(world.openai.events, limit, ({ id, type, timestamp_ms: at, source_url, user = {} }) => ({
        text: `${type} ${source_url}`,
        at,
        notes: [`id: ${id}`, `known of the person: ${Object.keys(user).join(", ")}`],
      }));
    case "snap":
      return newest(world.snap.events, limit, ({ event_name, event_id, event_time, event_source_url, user_data }) => ({
        text: `${event_name} ${event_source_url}`,
        at: event_time * 1000,
        notes: [`id: ${event_id ?? "none"}`, `known of the person: ${Object.keys(user_data).join(", ")}`],
      }));
    case "slack":
      return newest(world.slack.messages, limit, toShown);
    case "discord":
      return newest(world.discord.messages, limit, ({ text, at, marks, pings, embeds }) => {
        const effects = [...(pings ? ["notifies people"] : []), ...(embeds ? ["shows a preview of the link"] : [])];
        return { text, at, notes: [...formatNotes(marks), ...effects] };
      });
    case "google_chat":
      return newest(world.googleChat.messages, limit, toShown);
    case "teams":
      return newest(world.teams.messages, limit, toShown);
    case "telegram":
      return newest(world.telegram.messages, limit, toShown);
    case "line":
      return newest(world.line.messages, limit, toShown);
    case "whatsapp":
      return newest(world.whatsapp.messages, limit, toShown);
  }
}

type Content = Omit<ShownMessage, "number">;

function newest<Item>(
  { total, kept }: Recorded<Item>,
  limit: number,
  show: (item: Item) => Content,
): readonly ShownMessage[] {
  const shown = kept.slice(-limit);
  return shown.map((item, at) => ({ ...show(item), number: total - shown.length + at + 1 }));
}

interface Formatted {
  readonly text: string;
  /** Text that readers of the message see; if absent, they see all of `text`. */
  readonly shown?: string;
  readonly marks?: readonly string[];
  readonly at: number;
}

function toShown({ text, shown = text, marks = [], at }: Formatted): Content {
  return { text: shown, at, notes: formatNotes(marks) };
}

function formatNotes(marks: readonly string[]): readonly string[] {
  return marks.length === 0 ? [] : [`formatted: ${[...new Set(marks)].join(", ")}`];
}
