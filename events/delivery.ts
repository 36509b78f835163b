import { Type, type Static } from "@sinclair/typebox";
import { channelName, lane } from "./channel.ts";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

export const level = Type.Union([
  Type.Literal("debug"),
  Type.Literal("info"),
  Type.Literal("success"),
  Type.Literal("warning"),
  Type.Literal("error"),
  Type.Literal("critical"),
]);
export type Level = Static<typeof level>;

/** A notification owed to team chat. */
export const NotificationRequested = defineEvent(
  "NotificationRequested",
  Type.Object({ message: Type.String(), service: Type.String(), level }, closed),
);

/** A message owed to the messaging service. */
export const MessageRequested = defineEvent("MessageRequested", Type.Object({ text: Type.String() }, closed));

/** One attempt owed to each of `channels`. */
export const ChannelTestRequested = defineEvent(
  "ChannelTestRequested",
  Type.Object({ channels: Type.Array(channelName) }, closed),
);

/** A dead letter is owed again: `event_id` and `source` name the event whose dispatch is repeated. */
export const ChannelDispatchRetryRequested = defineEvent(
  "ChannelDispatchRetryRequested",
  Type.Object({ event_id: Type.String(), source: Type.Integer(), channel: channelName }, closed),
);

/**
 * `owed` is the position of the event that owes the dispatch. `settled_below` is the dispatcher's own account of
 * its lane: everything owed below that position has a final outcome, or a `ChannelDispatchFailed` that tells of its
 * next attempt. So a restart reads the log from there on, and a dispatch that waits long holds up nothing.
 */
const dispatch = {
  event_id: Type.String(),
  owed: Type.Integer(),
  channel: channelName,
  lane,
  attempt: Type.Integer(),
  settled_below: Type.Integer(),
};
const status = Type.Optional(Type.Integer());

export const ChannelDispatched = defineEvent(
  "ChannelDispatched",
  Type.Object({ ...dispatch, status, latency_ms: Type.Integer(), network_id: Type.Optional(Type.String()) }, closed),
);

/** Not final: the dispatch is tried again at `retry_at`. */
export const ChannelDispatchFailed = defineEvent(
  "ChannelDispatchFailed",
  Type.Object({ ...dispatch, status, detail: Type.String(), retry_at: Type.String() }, closed),
);

export const ChannelDispatchSkipped = defineEvent(
  "ChannelDispatchSkipped",
  Type.Object(
    {
      ...dispatch,
      reason: Type.Union([Type.Literal("no_user_agent"), Type.Literal("too_old"), Type.Literal("expired")]),
    },
    closed,
  ),
);

/** It may have arrived, and a repeat could double it: never tried again by itself. */
export const ChannelDispatchInDoubt = defineEvent(
  "ChannelDispatchInDoubt",
  Type.Object({ ...dispatch, status, detail: Type.String() }, closed),
);

/** The dead letter: refused for good, or out of attempts. */
export const ChannelDispatchAbandoned = defineEvent(
  "ChannelDispatchAbandoned",
  Type.Object({ ...dispatch, status, detail: Type.String(), refused: Type.Boolean() }, closed),
);
