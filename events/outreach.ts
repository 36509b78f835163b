import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

const closed = { additionalProperties: false };

/** A person as far as known: an imported handle has no id until the network was asked. */
export const recipient = Type.Object(
  { id: Type.Optional(Type.String()), username: Type.Optional(Type.String()) },
  closed,
);
export type Recipient = Static<typeof recipient>;

/** A person the network knows. */
export const knownRecipient = Type.Object({ id: Type.String(), username: Type.String() }, closed);
export type KnownRecipient = Static<typeof knownRecipient>;

export const basis = Type.Union([Type.Literal("dm_first"), Type.Literal("opt_in"), Type.Literal("none")]);
export type Basis = Static<typeof basis>;

export const skipReason = Type.Union([
  Type.Literal("already_contacted"),
  Type.Literal("suppressed"),
  Type.Literal("no_consent"),
  Type.Literal("cannot_receive_dm"),
  Type.Literal("protected"),
  Type.Literal("self"),
  Type.Literal("invalid_recipient"),
  Type.Literal("missing_field"),
]);
export type SkipReason = Static<typeof skipReason>;

export const RecipientAdded = defineEvent(
  "RecipientAdded",
  Type.Object(
    {
      recipient,
      name: Type.Optional(Type.String()),
      basis,
      fields: Type.Record(Type.String(), Type.String()),
      source: Type.Literal("list"),
    },
    closed,
  ),
);

export const RecipientSuppressed = defineEvent(
  "RecipientSuppressed",
  Type.Object({ recipient, reason: Type.Union([Type.Literal("by_hand"), Type.Literal("opt_out")]) }, closed),
);

/** An operator allows one more attempt after a failure. */
export const RecipientRetryAllowed = defineEvent("RecipientRetryAllowed", Type.Object({ recipient }, closed));

export const RunStarted = defineEvent(
  "RunStarted",
  Type.Object({ run_id: Type.String(), dry_run: Type.Boolean() }, closed),
);

/** The intent: appended before the network is called. `day` is the calendar day whose quota it takes a place of. */
export const DirectMessageAttempted = defineEvent(
  "DirectMessageAttempted",
  Type.Object(
    {
      attempt_id: Type.String(),
      run_id: Type.String(),
      recipient: knownRecipient,
      text: Type.String(),
      variant: Type.String(),
      day: Type.String(),
    },
    closed,
  ),
);

const outcome = { attempt_id: Type.String(), run_id: Type.String(), recipient: knownRecipient };

/** `settled_by`: the network's answer to the send, or a later look at the conversation. */
export const DirectMessageSent = defineEvent(
  "DirectMessageSent",
  Type.Object(
    {
      ...outcome,
      message_id: Type.String(),
      settled_by: Type.Union([Type.Literal("answer"), Type.Literal("lookup")]),
    },
    closed,
  ),
);

export const DirectMessageSkipped = defineEvent(
  "DirectMessageSkipped",
  Type.Object({ run_id: Type.String(), recipient, reason: skipReason, detail: Type.Optional(Type.String()) }, closed),
);

/**
 * `frees_quota`: the network refused for certain, so the day's place is given back.
 * `retry`: the person may be tried again in a later run.
 */
export const DirectMessageFailed = defineEvent(
  "DirectMessageFailed",
  Type.Object(
    {
      ...outcome,
      reason: Type.Union([
        Type.Literal("recipient_closed"),
        Type.Literal("rejected"),
        Type.Literal("not_delivered"),
        Type.Literal("unreachable"),
        Type.Literal("rate_limited"),
        Type.Literal("unauthorized"),
        Type.Literal("credits_depleted"),
        Type.Literal("usage_capped"),
        Type.Literal("sender_restricted"),
        Type.Literal("missing_scope"),
      ]),
      detail: Type.String(),
      frees_quota: Type.Boolean(),
      retry: Type.Boolean(),
    },
    closed,
  ),
);
export type FailureReason = Static<typeof DirectMessageFailed.data>["reason"];

/** The network may or may not have taken the message; a later look at the conversation decides. */
export const DirectMessageInDoubt = defineEvent(
  "DirectMessageInDoubt",
  Type.Object({ ...outcome, detail: Type.String() }, closed),
);

const counts = {
  sent: Type.Integer(),
  skipped: Type.Integer(),
  failed: Type.Integer(),
  in_doubt: Type.Integer(),
};

/** Why a run ended: `completed` (nobody left), a limit, a signal, or what the network said. */
export const runEnd = Type.Union([
  Type.Literal("completed"),
  Type.Literal("daily_limit_reached"),
  Type.Literal("time_limit"),
  Type.Literal("stopped"),
  Type.Literal("not_authorized"),
  Type.Literal("network_unavailable"),
  Type.Literal("credits_depleted"),
  Type.Literal("usage_capped"),
  Type.Literal("sender_restricted"),
  Type.Literal("missing_scope"),
  Type.Literal("fault"),
]);
export type RunEnd = Static<typeof runEnd>;

export const RunFinished = defineEvent(
  "RunFinished",
  Type.Object({ run_id: Type.String(), reason: runEnd, ...counts }, closed),
);

/** The process of the run died; appended by the next one. */
export const RunAbandoned = defineEvent("RunAbandoned", Type.Object({ run_id: Type.String(), ...counts }, closed));

export const RunRefused = defineEvent(
  "RunRefused",
  Type.Object({ reason: Type.Literal("daily_limit_reached"), day: Type.String(), used: Type.Integer() }, closed),
);

export const DryRunFinished = defineEvent(
  "DryRunFinished",
  Type.Object(
    { run_id: Type.String(), reason: runEnd, would_send: Type.Integer(), would_skip: Type.Integer() },
    closed,
  ),
);
