import { Type, type Static, type TProperties } from "@sinclair/typebox";
import { channelName, lane } from "./channel.ts";
import { defineEvent } from "./event.ts";
import { ERASED, withPersonal } from "./encryption.ts";
import { sources } from "./sources.ts";

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

/** A notification for team chat. */
export const NotificationRequested = withPersonal(
  defineEvent("NotificationRequested", Type.Object({ message: Type.String(), service: Type.String(), level }, closed)),
  {
    owner: () => ({ kind: "message" }),
    members: ["message"],
    inFolds: false,
    erased: () => ({ message: ERASED }),
  },
);

/** A message for the messaging service. */
export const MessageRequested = withPersonal(
  defineEvent("MessageRequested", Type.Object({ text: Type.String() }, closed)),
  { owner: () => ({ kind: "message" }), members: ["text"], inFolds: false, erased: () => ({ text: ERASED }) },
);

/** One attempt at each of `channels`. */
export const ChannelTestRequested = defineEvent(
  "ChannelTestRequested",
  Type.Object({ channels: Type.Array(channelName) }, closed),
);

/** When the first attempt that may have arrived was over: so long the network has known the dispatch by its id. */
const doubtful_since = Type.Optional(Type.String());

/**
 * A dead letter, or a dispatch in doubt (`in_doubt`), is to be dispatched again: `event_id` and `source` name the event
 * whose dispatch is repeated. `may_double`: an attempt may have arrived, and an operator had it sent again all the same.
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
      in_doubt: Type.Optional(Type.Literal(true)),
    },
    closed,
  ),
);

/**
 * How dispatches travel: one alone, several in one request of which the network answers each, or all in one message.
 */
const dispatchMode = Type.Union([Type.Literal("single"), Type.Literal("batch"), Type.Literal("digest")]);
export type DispatchMode = Static<typeof dispatchMode>;

/**
 * The outcome of requests that completed together. Each names what it carried by `sources`, the positions of the events
 * that requested the dispatches, as far as these have this outcome, at their attempt of this number. `low_watermark` is
 * the dispatcher's own account of its lane with this event: every dispatch requested below that position has a final
 * outcome, or a `DispatchFailed` with the time of its next attempt. So a restart reads the log from there on, and a
 * dispatch that waits long holds up nothing.
 */
const outcomeOf = <const Properties extends TProperties>(properties: Properties) =>
  Type.Object(
    {
      channel: channelName,
      lane,
      low_watermark: Type.Integer(),
      requests: Type.Array(Type.Object({ sources, attempt: Type.Integer(), ...properties }, closed), { minItems: 1 }),
    },
    closed,
  );
const status = Type.Optional(Type.Integer());

/** Of a network that answered, if only to refuse: its status, and how long it took. */
const answer = { status, latency_ms: Type.Optional(Type.Integer()) };

/** `digest`: the digest's own id, by which a network may know it. */
const asked = { mode: dispatchMode, digest: Type.Optional(Type.String()) };

/** Without a mode no request was made. */
const maybeAsked = { ...asked, mode: Type.Optional(dispatchMode) };

export const DispatchSucceeded = defineEvent(
  "DispatchSucceeded",
  outcomeOf({ ...asked, status, latency_ms: Type.Integer(), network_id: Type.Optional(Type.String()) }),
);

/**
 * Not final: the dispatches are tried again at `retry_at`. `may_have_arrived`: the network knows a repeat by its id, for
 * some time.
 */
export const DispatchFailed = defineEvent(
  "DispatchFailed",
  outcomeOf({
    ...asked,
    ...answer,
    detail: Type.String(),
    retry_at: Type.String(),
    may_have_arrived: Type.Optional(Type.Literal(true)),
  }),
);

export const DispatchSkipped = defineEvent(
  "DispatchSkipped",
  outcomeOf({
    reason: Type.Union([
      Type.Literal("no_user_agent"),
      Type.Literal("too_old"),
      Type.Literal("expired"),
      Type.Literal("filtered"),
    ]),
  }),
);

/** They may have arrived, and a repeat could double them: never tried again by themselves. */
export const DispatchInDoubt = defineEvent(
  "DispatchInDoubt",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String() }),
);

/** Dead letters: refused for good, or out of attempts. */
export const DispatchAbandoned = defineEvent(
  "DispatchAbandoned",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String(), refused: Type.Boolean(), doubtful_since }),
);

/** An operator gave a dead letter up for good. `source` is the position of the event whose dispatch it was. */
export const DispatchDiscarded = defineEvent(
  "DispatchDiscarded",
  Type.Object({ event_id: Type.String(), source: Type.Integer(), channel: channelName, why: Type.String() }, closed),
);

/**
 * An operator closed a dispatch in doubt: it `arrived`, or it is `left` as it is, sent or not. `source` is the position of
 * the event whose dispatch it was.
 */
export const DispatchSettled = defineEvent(
  "DispatchSettled",
  Type.Object(
    {
      event_id: Type.String(),
      source: Type.Integer(),
      channel: channelName,
      as: Type.Union([Type.Literal("arrived"), Type.Literal("left")]),
      why: Type.String(),
    },
    closed,
  ),
);

/**
 * Recorded before a request to a network that would not recognise every repeat, where several instances share the log:
 * the next dispatcher of the channel learns from it what may have arrived. `token` is the fencing token of the channel's
 * lease that the claim is made under; any outcome of the dispatches ends it.
 */
export const DispatchClaimed = defineEvent(
  "DispatchClaimed",
  Type.Object({ channel: channelName, lane, token: Type.Integer(), sources }, closed),
);

/**
 * So many requests failed in a row that nothing is sent before `until`; a single request decides then. `failures`: so
 * many, and more where it was open before.
 */
export const CircuitOpened = defineEvent(
  "CircuitOpened",
  Type.Object({ channel: channelName, failures: Type.Integer(), until: Type.String() }, closed),
);

/** A request arrived again. */
export const CircuitClosed = defineEvent("CircuitClosed", Type.Object({ channel: channelName }, closed));

/**
 * The network refuses the channel as a whole: its clicks wait, and direct sends fail at once.
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
