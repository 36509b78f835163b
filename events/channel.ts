import { Type, type Static } from "@sinclair/typebox";

/** Where dispatches go: the ads conversions API, the team chat, the messaging service. */
export const channelName = Type.Union([Type.Literal("ads"), Type.Literal("chat"), Type.Literal("messaging")]);
export type ChannelName = Static<typeof channelName>;

export const CHANNELS: readonly ChannelName[] = channelName.anyOf.map((name) => name.const);

/** Direct sends overtake clicks: each lane of a channel has its own cursor over the log. */
export const lane = Type.Union([Type.Literal("direct"), Type.Literal("clicks")]);
export type Lane = Static<typeof lane>;

export const LANES: readonly Lane[] = lane.anyOf.map((name) => name.const);
