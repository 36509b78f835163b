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

/** A test of `channels`: one attempt at each. */
export const ChannelTestRequested = defineEvent(
  "ChannelTestRequested",
  Type.Object({ channels: Type.Array(channelName) }, closed),
);

/** When the first attempt that may have arrived ended. The network has known the dispatch's id since then. */
const doubtful_since = Type.Optional(Type.String());

/** A dead letter or a dispatch in doubt is to be dispatched again. */
export const DispatchRetryRequested = defineEvent(
  "DispatchRetryRequested",
  Type.Object(
    {
      /** Id of the event whose dispatch is repeated. */
      event_id: Type.String(),
      /** Position of that event. */
      source: Type.Integer(),
      channel: channelName,
      doubtful_since,
      /** An attempt may have arrived, and an operator still had it sent again. */
      may_double: Type.Optional(Type.Literal(true)),
      /** The dispatch was in doubt; absent for a dead letter. */
      in_doubt: Type.Optional(Type.Literal(true)),
    },
    closed,
  ),
);

/**
 * How dispatches travel: one alone, several in one request that the network answers one by one, or all in one message.
 */
const dispatchMode = Type.Union([Type.Literal("single"), Type.Literal("batch"), Type.Literal("digest")]);
export type DispatchMode = Static<typeof dispatchMode>;

/** Schema of the outcome of requests that completed together. */
const outcomeOf = <const Properties extends TProperties>(properties: Properties) =>
  Type.Object(
    {
      channel: channelName,
      lane,
      /**
       * Every dispatch of the lane requested below this position has a final outcome, or a `DispatchFailed` with the
       * time of its next attempt. A restart reads the log from here, so a dispatch that waits long delays no other.
       */
      low_watermark: Type.Integer(),
      /**
       * `sources`: positions of the events that requested those dispatches of the request that have this outcome.
       * `attempt`: the number of their attempt.
       */
      requests: Type.Array(Type.Object({ sources, attempt: Type.Integer(), ...properties }, closed), { minItems: 1 }),
    },
    closed,
  );
const status = Type.Optional(Type.Integer());

/** Present if the network answered, even with a refusal: its status, and how long it took. */
const answer = { status, latency_ms: Type.Optional(Type.Integer()) };

/** `digest`: the id of the digest, by which a network may recognise it. */
const asked = { mode: dispatchMode, digest: Type.Optional(Type.String()) };

/** The mode is absent if no request was made. */
const maybeAsked = { ...asked, mode: Type.Optional(dispatchMode) };

export const DispatchSucceeded = defineEvent(
  "DispatchSucceeded",
  outcomeOf({ ...asked, status, latency_ms: Type.Integer(), network_id: Type.Optional(Type.String()) }),
);

/**
 * Not final: the dispatches are retried at `retry_at`. `may_have_arrived`: the network recognises a repeat by its id,
 * for some time.
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

/** The dispatches may have arrived and a repeat could double them, so they are never retried automatically. */
export const DispatchInDoubt = defineEvent(
  "DispatchInDoubt",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String() }),
);

/** Dead letters: refused for good, or out of attempts. */
export const DispatchAbandoned = defineEvent(
  "DispatchAbandoned",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String(), refused: Type.Boolean(), doubtful_since }),
);

/** An operator discarded a dead letter. `source` is the position of the event whose dispatch it was. */
export const DispatchDiscarded = defineEvent(
  "DispatchDiscarded",
  Type.Object({ event_id: Type.String(), source: Type.Integer(), channel: channelName, why: Type.String() }, closed),
);

/**
 * An operator closed a dispatch in doubt: it `arrived`, or it is `left` as it is, sent or not. `source` is the position
 * of the event whose dispatch it was.
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
 * Recorded before a request to a network that may not recognise a repeat, if several instances share the log: it tells
 * the next dispatcher what may have arrived. Any outcome ends the claim. `token`: fencing token of the channel's lease.
 */
export const DispatchClaimed = defineEvent(
  "DispatchClaimed",
  Type.Object({ channel: channelName, lane, token: Type.Integer(), sources }, closed),
);

/**
 * Too many requests in a row failed: nothing is sent before `until`, then a single request decides. `failures`: how
 * many failed, including earlier ones if the circuit was open before.
 */
export const CircuitOpened = defineEvent(
  "CircuitOpened",
  Type.Object({ channel: channelName, failures: Type.Integer(), until: Type.String() }, closed),
);

/** A request reached the network again. */
export const CircuitClosed = defineEvent("CircuitClosed", Type.Object({ channel: channelName }, closed));

/**
 * The network refuses the channel as a whole: its clicks wait, and direct sends fail at once. `credential`: a keyed
 * hash of the refused credential, so that another one is recognised.
 */
export const ChannelSuspended = defineEvent(
  "ChannelSuspended",
  Type.Object(
    { channel: channelName, network: Type.String(), status, detail: Type.String(), credential: Type.String() },
    closed,
  ),
);

/** `delivered`: the network accepted a test. */
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
