import { Type, type Static, type TProperties } from "@sinclair/typebox";
import { channelName, lane } from "./channel-and-lane-names.ts";
import { defineEvent } from "./define-event.ts";
import { ERASED, withPersonal } from "./declare-personal-members.ts";
import { sources } from "./position-ranges.ts";

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

/**
 * Details of a notification that reports on outreach. `run_id`: the run that ended; absent if a caller requested the
 * report. `clicks`: number of people's clicks so far, from which the next report counts; absent if it could not be
 * read.
 */
const report = Type.Object({ run_id: Type.Optional(Type.String()), clicks: Type.Optional(Type.Integer()) }, closed);

/** Event: a notification for the team chat was requested, by a caller or by the service. */
export const NotificationRequested = withPersonal(
  defineEvent(
    "NotificationRequested",
    Type.Object({ message: Type.String(), service: Type.String(), level, report: Type.Optional(report) }, closed),
  ),
  {
    owner: () => ({ kind: "message" }),
    members: ["message"],
    inFolds: false,
    erased: () => ({ message: ERASED }),
  },
);

/** Event: a caller requested a message for the messaging service. */
export const MessageRequested = withPersonal(
  defineEvent("MessageRequested", Type.Object({ text: Type.String() }, closed)),
  { owner: () => ({ kind: "message" }), members: ["text"], inFolds: false, erased: () => ({ text: ERASED }) },
);

/** Event: a test of `channels` was requested: one attempt to dispatch to each. */
export const ChannelTestRequested = defineEvent(
  "ChannelTestRequested",
  Type.Object({ channels: Type.Array(channelName) }, closed),
);

/**
 * Time at which the first attempt that may have arrived ended. From then on, and for a limited time, the network may
 * recognise a repeat by the dispatch's id.
 */
const doubtful_since = Type.Optional(Type.String());

/** Event: a dead letter, or a dispatch in doubt, is to be dispatched again. */
export const DispatchRetryRequested = defineEvent(
  "DispatchRetryRequested",
  Type.Object(
    {
      /** Id of the event whose dispatch is repeated. */
      event_id: Type.String(),
      /** Position of the event whose dispatch is repeated. */
      source: Type.Integer(),
      channel: channelName,
      doubtful_since,
      /** True if an earlier attempt may have arrived, and an operator still had the dispatch repeated. */
      may_double: Type.Optional(Type.Literal(true)),
      /** True if the dispatch was in doubt; absent for a dead letter. */
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

/** Returns the schema of an event that records one outcome of requests which completed together. */
const outcomeOf = <const Properties extends TProperties>(properties: Properties) =>
  Type.Object(
    {
      channel: channelName,
      lane,
      /**
       * Position from which a dispatcher reads the log after a restart. All dispatches requested before it in this lane
       * (queue of a channel) have a final outcome, or a `DispatchFailed` names the time of their next attempt.
       */
      low_watermark: Type.Integer(),
      /**
       * Requests to the network that had this outcome. `sources`: positions of the events that asked for the dispatches
       * in the request. `attempt`: 1 for the first attempt at these dispatches.
       */
      requests: Type.Array(Type.Object({ sources, attempt: Type.Integer(), ...properties }, closed), { minItems: 1 }),
    },
    closed,
  );
const status = Type.Optional(Type.Integer());

/**
 * Network's answer to a request: its status and how long it took. Present even if the network refused; absent if it did
 * not answer.
 */
const answer = { status, latency_ms: Type.Optional(Type.Integer()) };

/**
 * How the dispatcher sent a request. `digest`: id of the message that carried several dispatches; a network may
 * recognise a repeat by it.
 */
const asked = { mode: dispatchMode, digest: Type.Optional(Type.String()) };

/** How a request to a network was sent; `mode` is absent if the dispatcher made no request. */
const maybeAsked = { ...asked, mode: Type.Optional(dispatchMode) };

export const DispatchSucceeded = defineEvent(
  "DispatchSucceeded",
  outcomeOf({ ...asked, status, latency_ms: Type.Integer(), network_id: Type.Optional(Type.String()) }),
);

/**
 * Event: an attempt failed, and the dispatches are retried at `retry_at`. `may_have_arrived`: the attempt may have
 * succeeded, and the network recognises a repeat by its id for some time.
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
      Type.Literal("no_ip_address"),
      Type.Literal("too_old"),
      Type.Literal("expired"),
      Type.Literal("filtered"),
    ]),
  }),
);

/** Event: dispatches may have arrived, and a repeat could double them, so they are never retried automatically. */
export const DispatchInDoubt = defineEvent(
  "DispatchInDoubt",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String() }),
);

/** Event: dispatches became dead letters, because the network refused them for good or the attempts ran out. */
export const DispatchAbandoned = defineEvent(
  "DispatchAbandoned",
  outcomeOf({ ...maybeAsked, ...answer, detail: Type.String(), refused: Type.Boolean(), doubtful_since }),
);

/** Event: an operator discarded a dead letter. `source` is the position of the event whose dispatch it was. */
export const DispatchDiscarded = defineEvent(
  "DispatchDiscarded",
  Type.Object({ event_id: Type.String(), source: Type.Integer(), channel: channelName, why: Type.String() }, closed),
);

/**
 * Event: an operator closed a dispatch in doubt. `arrived`: the operator says that it arrived; `left`: it stays unknown
 * if it arrived. `source`: position of the event whose dispatch it was.
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
 * Event: the network reported that it lost a message which it had accepted. `source` is the position of an event that
 * the message carried. `retry` is the position of the retry that requested the message; absent if no retry did.
 */
export const DispatchLost = defineEvent(
  "DispatchLost",
  Type.Object(
    {
      event_id: Type.String(),
      source: Type.Integer(),
      retry: Type.Optional(Type.Integer()),
      channel: channelName,
      detail: Type.String(),
    },
    closed,
  ),
);

/**
 * Event, if several instances share the log: a dispatcher is about to make a request whose repeat the network may not
 * recognise. Until its outcome follows, its dispatches may have arrived. `token`: fencing token of the dispatcher's
 * lease.
 */
export const DispatchClaimed = defineEvent(
  "DispatchClaimed",
  Type.Object({ channel: channelName, lane, token: Type.Integer(), sources }, closed),
);

/**
 * Event: too many requests of a channel failed in a row. Nothing is sent before `until`, then a single request decides
 * if sending continues. `failures`: how many failed, including earlier ones if the circuit was open before.
 */
export const CircuitOpened = defineEvent(
  "CircuitOpened",
  Type.Object({ channel: channelName, failures: Type.Integer(), until: Type.String() }, closed),
);

/** Event: a request reached the network again, so sending continues. */
export const CircuitClosed = defineEvent("CircuitClosed", Type.Object({ channel: channelName }, closed));

/**
 * Event: the network refuses the channel as a whole. Its clicks wait, and direct sends fail at once. `credential`: a
 * keyed hash of the refused credential, so that a new one is noticed.
 */
export const ChannelSuspended = defineEvent(
  "ChannelSuspended",
  Type.Object(
    { channel: channelName, network: Type.String(), status, detail: Type.String(), credential: Type.String() },
    closed,
  ),
);

/** Event: a suspended channel works again. `delivered`: the network accepted a test. */
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
