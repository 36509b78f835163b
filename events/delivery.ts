import { Type, type Static } from "@sinclair/typebox";
import { channelName, lane } from "./channel.ts";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";

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
export const NotificationRequested = withPersonal(
  defineEvent("NotificationRequested", Type.Object({ message: Type.String(), service: Type.String(), level }, closed)),
  {
    owner: () => ({ kind: "message" }),
    members: ["message"],
    inFolds: false,
    erased: () => ({ message: ERASED }),
  },
);

/** A message owed to the messaging service. */
export const MessageRequested = withPersonal(
  defineEvent("MessageRequested", Type.Object({ text: Type.String() }, closed)),
  { owner: () => ({ kind: "message" }), members: ["text"], inFolds: false, erased: () => ({ text: ERASED }) },
);

/** One attempt owed to each of `channels`. */
export const ChannelTestRequested = defineEvent(
  "ChannelTestRequested",
  Type.Object({ channels: Type.Array(channelName) }, closed),
);

/** When the first attempt that may have arrived was over: so long the network has known the dispatch by its id. */
const doubtful_since = Type.Optional(Type.String());

/**
 * A dead letter is owed again: `event_id` and `source` name the event whose dispatch is repeated. `may_double`: an
 * attempt may have arrived, and an operator had it sent again all the same.
 */
export const DispatchRetryRequested = defineEvent(
  "DispatchRetryRequested",
  Type.Object(
    {
      event_id: Type.String(),
      source: Type.Integer(),
      channel: channelName,
      doubtful_since,
      may_double: Type.Optional(Type.Literal(true)),
    },
    closed,
  ),
);

/**
 * `owed` is the position of the event that owes the dispatch. `low_watermark` is the dispatcher's own account of
 * its lane: everything owed below that position has a final outcome, or a `DispatchFailed` that tells of its
 * next attempt. So a restart reads the log from there on, and a dispatch that waits long holds up nothing.
 */
const dispatch = {
  event_id: Type.String(),
  owed: Type.Integer(),
  channel: channelName,
  lane,
  attempt: Type.Integer(),
  low_watermark: Type.Integer(),
};
const status = Type.Optional(Type.Integer());

/** Of a network that answered, if only to refuse: its status, and how long it took. */
const answer = { status, latency_ms: Type.Optional(Type.Integer()) };

/** Of clicks that one request told together: the digest's id, which all of them share. */
const digest = Type.Optional(Type.String());

export const DispatchSucceeded = defineEvent(
  "DispatchSucceeded",
  Type.Object(
    { ...dispatch, status, latency_ms: Type.Integer(), network_id: Type.Optional(Type.String()), digest },
    closed,
  ),
);

/**
 * Not final: the dispatch is tried again at `retry_at`. `may_have_arrived`: the network knows a repeat by its id, for
 * some time.
 */
export const DispatchFailed = defineEvent(
  "DispatchFailed",
  Type.Object(
    {
      ...dispatch,
      ...answer,
      detail: Type.String(),
      retry_at: Type.String(),
      may_have_arrived: Type.Optional(Type.Literal(true)),
      digest,
    },
    closed,
  ),
);

export const DispatchSkipped = defineEvent(
  "DispatchSkipped",
  Type.Object(
    {
      ...dispatch,
      reason: Type.Union([Type.Literal("no_user_agent"), Type.Literal("too_old"), Type.Literal("expired")]),
    },
    closed,
  ),
);

/** It may have arrived, and a repeat could double it: never tried again by itself. */
export const DispatchInDoubt = defineEvent(
  "DispatchInDoubt",
  Type.Object({ ...dispatch, ...answer, detail: Type.String(), digest }, closed),
);

/** The dead letter: refused for good, or out of attempts. */
export const DispatchAbandoned = defineEvent(
  "DispatchAbandoned",
  Type.Object(
    { ...dispatch, ...answer, detail: Type.String(), refused: Type.Boolean(), doubtful_since, digest },
    closed,
  ),
);

/** An operator gave a dead letter up for good. `source` is the position of the event whose dispatch it was. */
export const DispatchDiscarded = defineEvent(
  "DispatchDiscarded",
  Type.Object({ event_id: Type.String(), source: Type.Integer(), channel: channelName, why: Type.String() }, closed),
);

/**
 * The network refuses the channel as a whole: what it is owed waits, and direct sends fail at once.
 * `credential`: a keyed hash of what it was refused with, so that another one is recognised.
 */
export const ChannelSuspended = defineEvent(
  "ChannelSuspended",
  Type.Object(
    { channel: channelName, network: Type.String(), status, detail: Type.String(), credential: Type.String() },
    closed,
  ),
);

/** `delivered`: the network took a test. */
export const ChannelResumed = defineEvent(
  "ChannelResumed",
  Type.Object(
    {
      channel: channelName,
      why: Type.Union([Type.Literal("by_hand"), Type.Literal("credential_changed"), Type.Literal("delivered")]),
    },
    closed,
  ),
);
