import { Type, type Static } from "@sinclair/typebox";

/**
 * Destinations that clicks are dispatched to: the conversions APIs of ads networks, of which `ads` is Meta's, the team
 * chat, the messaging service.
 */
export const clickChannel = Type.Union([
  Type.Literal("ads"),
  Type.Literal("ads-openai"),
  Type.Literal("ads-snap"),
  Type.Literal("chat"),
  Type.Literal("messaging"),
]);
export type ClickChannel = Static<typeof clickChannel>;

export const CLICK_CHANNELS: readonly ClickChannel[] = clickChannel.anyOf.map((name) => name.const);

/** Maximum length of a webhook's name, which is part of the names of roles, metric labels and columns. */
export const WEBHOOK_NAME_CHARS_MAX = 24;

/** The channel of a webhook: `webhook` for the unnamed one, or with its name, such as `webhook-crm`. */
export type WebhookChannel = "webhook" | `webhook-${string}`;

const WEBHOOK_PATTERN = `webhook(-[a-z0-9-]{1,${WEBHOOK_NAME_CHARS_MAX}})?`;

export const webhookChannel = Type.Unsafe<WebhookChannel>(Type.String({ pattern: `^${WEBHOOK_PATTERN}$` }));

/**
 * A channel that dispatches go to: a click channel, or a webhook to one of the operator's programs, which gets the
 * events that it is subscribed to.
 */
export type ChannelName = ClickChannel | WebhookChannel;

export const channelName = Type.Unsafe<ChannelName>(
  Type.String({ pattern: `^(${CLICK_CHANNELS.join("|")}|${WEBHOOK_PATTERN})$`, examples: ["chat", "webhook-crm"] }),
);

/** All channels but named webhooks, in the order in which they are shown. */
export const CHANNEL_NAMES = [...CLICK_CHANNELS, "webhook"] as const;

/** Channels that every log shows from the start. Any other channel is added with its first dispatch. */
export const CHANNELS = ["ads", "chat", "messaging", "webhook"] as const;

/** Sorts channels: first {@link CHANNEL_NAMES} in their order, then the others by name. */
export function sortChannels(names: Iterable<ChannelName>): readonly ChannelName[] {
  const given = new Set(names);
  const named = [...given].filter((name) => !CHANNEL_NAMES.some((fixed) => fixed === name));
  return [...CHANNEL_NAMES.filter((name) => given.has(name)), ...named.sort()];
}

export function isWebhook(name: string): name is WebhookChannel {
  return name.startsWith("webhook");
}

/**
 * Queue of a channel's dispatches. Each lane has its own cursor over the log, so that direct sends overtake clicks and
 * a webhook's events.
 */
export const lane = Type.Union([Type.Literal("direct"), Type.Literal("clicks"), Type.Literal("events")]);
export type Lane = Static<typeof lane>;

export const LANES: readonly Lane[] = lane.anyOf.map((name) => name.const);

/**
 * Returns the lanes of a channel: one for direct sends, and one for events of the log if it is a webhook, or else for
 * clicks.
 */
export function lanesOf(channel: ChannelName): readonly Lane[] {
  return ["direct", backlogLaneOf(channel)];
}

/**
 * Returns the lane (queue of a channel) for dispatches that no caller waits for: `events` for a webhook, `clicks` for
 * any other channel.
 */
export function backlogLaneOf(channel: ChannelName): Lane {
  return isWebhook(channel) ? "events" : "clicks";
}
