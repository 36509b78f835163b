import { Type, type Static } from "@sinclair/typebox";

/** Where clicks go: the ads conversions API, the team chat, the messaging service. */
export const clickChannel = Type.Union([Type.Literal("ads"), Type.Literal("chat"), Type.Literal("messaging")]);
export type ClickChannel = Static<typeof clickChannel>;

export const CLICK_CHANNELS: readonly ClickChannel[] = clickChannel.anyOf.map((name) => name.const);

/** Where dispatches go: there, and to a program of the operator's, which gets the events that it is subscribed to. */
export const channelName = Type.Union([...clickChannel.anyOf, Type.Literal("webhook")]);
export type ChannelName = Static<typeof channelName>;

export const CHANNELS: readonly ChannelName[] = channelName.anyOf.map((name) => name.const);

/** Direct sends overtake clicks, and the webhook's events: each lane of a channel has its own cursor over the log. */
export const lane = Type.Union([Type.Literal("direct"), Type.Literal("clicks"), Type.Literal("events")]);
export type Lane = Static<typeof lane>;

export const LANES: readonly Lane[] = lane.anyOf.map((name) => name.const);

/** The lanes that a channel has: a webhook carries events of the log, the others clicks. */
export function lanesOf(channel: ChannelName): readonly Lane[] {
  return ["direct", backlogLaneOf(channel)];
}

/** The lane whose dispatches wait for their turn, since no caller waits for them. */
export function backlogLaneOf(channel: ChannelName): Lane {
  return channel === "webhook" ? "events" : "clicks";
}
