import { Type, type Static } from "@sinclair/typebox";

/** Where clicks go: the ads conversions API, the team chat, the messaging service. */
export const clickChannel = Type.Union([Type.Literal("ads"), Type.Literal("chat"), Type.Literal("messaging")]);
export type ClickChannel = Static<typeof clickChannel>;

export const CLICK_CHANNELS: readonly ClickChannel[] = clickChannel.anyOf.map((name) => name.const);

/** Maximum length of a webhook's name, which is part of roles, labels and columns. */
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

/** The channels that every log has, in the order in which they are shown. Named webhooks follow them. */
export const CHANNELS = [...CLICK_CHANNELS, "webhook"] as const;

/** Sorts channels: first {@link CHANNELS} in their order, then the others by name. */
export function sortChannels(names: Iterable<ChannelName>): readonly ChannelName[] {
  const given = new Set(names);
  const named = [...given].filter((name) => !CHANNELS.some((fixed) => fixed === name));
  return [...CHANNELS.filter((name) => given.has(name)), ...named.sort()];
}

export function isWebhook(name: string): name is WebhookChannel {
  return name.startsWith("webhook");
}

/**
 * A lane of a channel. Each has its own cursor over the log, so that direct sends overtake clicks and a webhook's
 * events.
 */
export const lane = Type.Union([Type.Literal("direct"), Type.Literal("clicks"), Type.Literal("events")]);
export type Lane = Static<typeof lane>;

export const LANES: readonly Lane[] = lane.anyOf.map((name) => name.const);

/** The lanes of a channel: direct sends, and the log's events for a webhook or clicks for the others. */
export function lanesOf(channel: ChannelName): readonly Lane[] {
  return ["direct", backlogLaneOf(channel)];
}

/** The lane whose dispatches wait for their turn, since no caller waits for them. */
export function backlogLaneOf(channel: ChannelName): Lane {
  return isWebhook(channel) ? "events" : "clicks";
}
