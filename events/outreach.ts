import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";
import { ERASED, erasedPerson, withPersonal, type Owner } from "./encryption.ts";

const closed = { additionalProperties: false };

/** A recipient. An imported handle has no id until the network is asked for it. */
export const recipient = Type.Object(
  { id: Type.Optional(Type.String()), username: Type.Optional(Type.String()) },
  closed,
);
export type Recipient = Static<typeof recipient>;

/** A recipient that the network knows. */
export const knownRecipient = Type.Object({ id: Type.String(), username: Type.String() }, closed);
export type KnownRecipient = Static<typeof knownRecipient>;

/** Marks the data as personal data of the recipient that the event is about. */
const ofRecipient = {
  owner: ({ recipient: { id, username } }: { recipient: Recipient }): Owner => ({ kind: "person", id, username }),
  inFolds: true,
} as const;

function erasedRecipient(mark: string) {
  return { recipient: { id: erasedPerson(mark), username: erasedPerson(mark) } };
}

export const basis = Type.Union([Type.Literal("dm_first"), Type.Literal("opt_in"), Type.Literal("none")]);
export type Basis = Static<typeof basis>;

/** A recipient's consent to have their own clicks recorded; separate from consent to messages. */
export const tracking = Type.Union([Type.Literal("granted"), Type.Literal("denied"), Type.Literal("unknown")]);
export type Tracking = Static<typeof tracking>;

/**
 * When (ISO 8601), where and to which wording the recipient agreed. `consent_source`: the address of a form, or `form`,
 * `list`, `import`, `message`. `consent_text`: the wording, or its version.
 */
const consentEvidence = {
  consent_at: Type.Optional(Type.String()),
  consent_source: Type.Optional(Type.String()),
  consent_text: Type.Optional(Type.String()),
};

/** The same evidence for tracking. */
const trackingEvidence = {
  tracking_at: Type.Optional(Type.String()),
  tracking_source: Type.Optional(Type.String()),
  tracking_text: Type.Optional(Type.String()),
};

const EVIDENCE = [
  "consent_at",
  "consent_source",
  "consent_text",
  "tracking_at",
  "tracking_source",
  "tracking_text",
] as const;

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

export const RecipientAdded = withPersonal(
  defineEvent(
    "RecipientAdded",
    Type.Object(
      {
        recipient,
        name: Type.Optional(Type.String()),
        /** Absent if the list does not say; the basis then stays as it is. */
        basis: Type.Optional(basis),
        ...consentEvidence,
        tracking: Type.Optional(tracking),
        ...trackingEvidence,
        /** IANA name of the recipient's time zone. */
        timezone: Type.Optional(Type.String()),
        fields: Type.Record(Type.String(), Type.String()),
        /**
         * Columns with a blank cell: the stored `name`, `timezone` or field of that name is removed, and all others
         * stay. Absent in older events, whose `fields` replace all fields.
         */
        blank: Type.Optional(Type.Array(Type.String())),
        source: Type.Literal("list"),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "name", "timezone", "fields", "blank", ...EVIDENCE],
    erased: (mark) => ({ ...erasedRecipient(mark), fields: {} }),
  },
);

/**
 * A recipient's consent changed: `basis` to be written to, `tracking` to have their clicks recorded; an absent one
 * stays as it was. `message_id`: the reply in which they said so.
 */
export const ConsentRecorded = withPersonal(
  defineEvent(
    "ConsentRecorded",
    Type.Object(
      {
        recipient,
        basis: Type.Optional(basis),
        ...consentEvidence,
        tracking: Type.Optional(tracking),
        ...trackingEvidence,
        message_id: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  { ...ofRecipient, members: ["recipient", "message_id", ...EVIDENCE], erased: erasedRecipient },
);

/**
 * `list`: an imported list says so, with or without its own reason. `hash`: one of the recipient's names has the hash
 * of an earlier suppression.
 */
export const suppressionReason = Type.Union([
  Type.Literal("by_hand"),
  Type.Literal("opt_out"),
  Type.Literal("list"),
  Type.Literal("hash"),
]);

/** The recipient never gets a message again. */
export const RecipientSuppressed = withPersonal(
  defineEvent(
    "RecipientSuppressed",
    Type.Object(
      {
        /** Absent if a list names the recipient by a hash alone. */
        recipient: Type.Optional(recipient),
        reason: suppressionReason,
        /** Why they were suppressed elsewhere, as a list says. */
        reason_text: Type.Optional(Type.String()),
        /** When they were suppressed elsewhere, as a list says, ISO 8601. */
        suppressed_at: Type.Optional(Type.String()),
        /** Keyed hashes of id and handle, which outlast the recipient's other data. */
        hashes: Type.Optional(Type.Array(Type.String())),
        /** The reply that asked for it. */
        message_id: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    // Without a recipient the text belongs to the owner of the hash: an erasure computes the hash from the name.
    owner: ({ recipient, hashes: [hash] = [] }: { recipient?: Recipient; hashes?: readonly string[] }): Owner => ({
      kind: "person",
      ...(recipient ?? { id: hash }),
    }),
    inFolds: true,
    members: ["recipient", "message_id", "reason_text"],
    erased: erasedRecipient,
  },
);

/**
 * A reply may ask us to stop: the recipient gets no message until an operator suppresses or releases them.
 * `received_at`: when the network received it, ISO 8601. Its text is not stored.
 */
export const RecipientHeld = withPersonal(
  defineEvent(
    "RecipientHeld",
    Type.Object({ recipient, message_id: Type.String(), received_at: Type.String() }, closed),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "message_id"],
    erased: (mark) => ({ ...erasedRecipient(mark), message_id: ERASED }),
  },
);

/** An operator has read the reply and found that it does not ask us to stop. */
export const RecipientReleased = withPersonal(defineEvent("RecipientReleased", Type.Object({ recipient }, closed)), {
  ...ofRecipient,
  members: ["recipient"],
  erased: erasedRecipient,
});

/**
 * A recipient wrote to us: appended for their first message, and for their first one after ours. Its text is not
 * stored.
 */
export const DirectMessageReceived = withPersonal(
  defineEvent(
    "DirectMessageReceived",
    Type.Object({ recipient, message_id: Type.String(), received_at: Type.String() }, closed),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "message_id"],
    erased: (mark) => ({ ...erasedRecipient(mark), message_id: ERASED }),
  },
);

/**
 * How far the messages to us were read: all up to `newest_id`, and those from before the first reading down to
 * `backlog` (absent: nothing older is left to read).
 */
export const InboxRead = defineEvent(
  "InboxRead",
  Type.Object(
    {
      run_id: Type.String(),
      newest_id: Type.Optional(Type.String()),
      backlog: Type.Optional(Type.String()),
      messages: Type.Integer(),
    },
    closed,
  ),
);

export const pagedSource = Type.Union([
  Type.Literal("followers"),
  Type.Literal("search"),
  Type.Literal("list_members"),
]);
export type PagedSource = Static<typeof pagedSource>;

/** A page of a source was processed. */
export const SourceRead = withPersonal(
  defineEvent(
    "SourceRead",
    Type.Object(
      {
        run_id: Type.String(),
        source: pagedSource,
        /** The query, the list or the account that was read. */
        scope: Type.String(),
        /** Where the page begins; absent if it is the first one of a pass. */
        from: Type.Optional(Type.String()),
        /** Where the next page begins; absent if this was the last one. */
        next: Type.Optional(Type.String()),
        /**
         * The newest entry of the page (for a search, of the pass). Once the pass has ended, a later one reads only
         * down to this entry.
         */
        newest: Type.Optional(Type.String()),
        people: Type.Integer(),
      },
      closed,
    ),
  ),
  {
    // The newest entry of a source is a user, or one of their posts.
    owner: ({ newest }: { newest?: string }): Owner => ({ kind: "person", id: newest }),
    members: ["newest"],
    inFolds: true,
    erased: (mark) => ({ newest: erasedPerson(mark) }),
  },
);

/**
 * Allows one more attempt after a failure. An operator allows it, or the run `run_id`, which found that the network
 * refuses the account and not the recipient.
 */
export const RecipientRetryAllowed = withPersonal(
  defineEvent("RecipientRetryAllowed", Type.Object({ recipient, run_id: Type.Optional(Type.String()) }, closed)),
  { ...ofRecipient, members: ["recipient"], erased: erasedRecipient },
);

export const recipientSource = Type.Union([Type.Literal("list"), Type.Literal("inbound"), ...pagedSource.anyOf]);
export type RecipientSource = Static<typeof recipientSource>;

/** The recipients that a caller wants a run for, and their maximum number. */
const selection = {
  limit: Type.Optional(Type.Integer()),
  variant: Type.Optional(Type.String()),
  basis: Type.Optional(basis),
  source: Type.Optional(recipientSource),
};

/** The rules that a run decides by, recorded for later "what if" questions. */
export const runRules = Type.Object(
  {
    daily_limit: Type.Integer(),
    timezone: Type.String(),
    require_consent: Type.Union([Type.Boolean(), Type.Literal("evidence")]),
    /** Absent if no share of failures ends the run. */
    stop_after_failures: Type.Optional(Type.Number()),
    /** Absent if the sending window is always open. */
    window: Type.Optional(
      Type.Object(
        {
          text: Type.String(),
          zone: Type.Union([Type.Literal("quota"), Type.Literal("recipient")]),
          when_closed: Type.Union([Type.Literal("pause"), Type.Literal("end")]),
        },
        closed,
      ),
    ),
    /** The template's id. */
    template: Type.String(),
    /** The operator's name for the template; absent if it has none. */
    template_name: Type.Optional(Type.String()),
  },
  closed,
);
export type RunRules = Static<typeof runRules>;

/**
 * The run sends at most `limit` messages, and no more than the day's quota. `variant`, `basis` and `source` restrict
 * its recipients; absent: all. `rules`: absent in older events.
 */
export const RunStarted = defineEvent(
  "RunStarted",
  Type.Object({ run_id: Type.String(), dry_run: Type.Boolean(), ...selection, rules: Type.Optional(runRules) }, closed),
);

/** A run waits. */
export const RunPaused = defineEvent(
  "RunPaused",
  Type.Object(
    {
      run_id: Type.String(),
      reason: Type.Union([
        /** Spreads the messages, if no `next_at` of a message says so. */
        Type.Literal("pace"),
        /** The network asks for the wait. */
        Type.Literal("rate_limited"),
        /** Precedes the retry of a request that got no answer. */
        Type.Literal("network_unavailable"),
        /** Gives the network time to show a message that is in doubt. */
        Type.Literal("settling"),
        /** Lasts until messages may be sent again. */
        Type.Literal("window_closed"),
      ]),
      /** ISO 8601. */
      until: Type.String(),
    },
    closed,
  ),
);
export type PauseReason = Static<typeof RunPaused.data>["reason"];

/** An operator ends the run early; work in progress is settled first. */
export const RunStopRequested = defineEvent("RunStopRequested", Type.Object({ run_id: Type.String() }, closed));

/**
 * A recipient's own link. `link`: the shared link of the same variant and target, under which its clicks are counted.
 */
const personalLink = Type.Object({ code: Type.String(), link: Type.String() }, closed);

/** The intent: appended before the network is called. */
export const DirectMessageAttempted = withPersonal(
  defineEvent(
    "DirectMessageAttempted",
    Type.Object(
      {
        attempt_id: Type.String(),
        run_id: Type.String(),
        recipient: knownRecipient,
        text: Type.String(),
        variant: Type.String(),
        /** The beginning of the SHA-256 of all variants: it distinguishes variant A from that of another template. */
        template: Type.Optional(Type.String()),
        /** The operator's name for the template. */
        template_name: Type.Optional(Type.String()),
        /** The links of the text. They outlast it, because clicks are compared with them; absent in older events. */
        links: Type.Optional(Type.Array(Type.String())),
        /** The recipient's own links, which replace some of `links` in the text if the recipient granted tracking. */
        personal_links: Type.Optional(Type.Array(personalLink)),
        /** The `links` that the text does not contain, because personal ones replace them. */
        replaced_links: Type.Optional(Type.Array(Type.String())),
        /** The ground on which the recipient is contacted. */
        basis: Type.Optional(basis),
        /** Where the recipient was found. */
        source: Type.Optional(recipientSource),
        /** The account that the message is from: only this account can find it in a conversation. */
        account_id: Type.Optional(Type.String()),
        /** The calendar day whose quota the message counts against. */
        day: Type.String(),
        /** The time zone of `day`; absent if it is the same as before. */
        timezone: Type.Optional(Type.String()),
        decided_at: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "text", "personal_links"],
    erased: (mark) => ({ ...erasedRecipient(mark), text: ERASED }),
  },
);

const outcome = { attempt_id: Type.String(), run_id: Type.String(), recipient: knownRecipient };

/** The network accepted the message. */
export const DirectMessageSent = withPersonal(
  defineEvent(
    "DirectMessageSent",
    Type.Object(
      {
        ...outcome,
        message_id: Type.String(),
        /** `answer`: the network's answer to the send. `lookup`: a later look at the conversation. */
        settled_by: Type.Union([Type.Literal("answer"), Type.Literal("lookup")]),
        /** The run sends no other message before this time, ISO 8601; absent if it need not wait. */
        next_at: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "message_id"],
    erased: (mark) => ({ ...erasedRecipient(mark), message_id: ERASED }),
  },
);

/**
 * `found`: a message of ours in their conversation that a restored log does not hold. From then on the recipient counts
 * as contacted.
 */
export const DirectMessageSkipped = withPersonal(
  defineEvent(
    "DirectMessageSkipped",
    Type.Object(
      {
        run_id: Type.String(),
        recipient,
        reason: skipReason,
        detail: Type.Optional(Type.String()),
        found: Type.Optional(Type.Object({ message_id: Type.String(), sent_at: Type.String() }, closed)),
      },
      closed,
    ),
  ),
  { ...ofRecipient, members: ["recipient", "found"], erased: erasedRecipient },
);

export const DirectMessageFailed = withPersonal(
  defineEvent(
    "DirectMessageFailed",
    Type.Object(
      {
        ...outcome,
        reason: Type.Union([
          Type.Literal("recipient_closed"),
          /** The network does not say why, so the refusal counts as the recipient's. */
          Type.Literal("not_permitted"),
          Type.Literal("rejected"),
          Type.Literal("not_delivered"),
          Type.Literal("unreachable"),
          Type.Literal("rate_limited"),
          /** The run or the day ended before the message was sent. */
          Type.Literal("withdrawn"),
          /** The recipient asked us to stop before the message was sent. */
          Type.Literal("suppressed"),
          Type.Literal("unauthorized"),
          Type.Literal("credits_depleted"),
          Type.Literal("usage_capped"),
          /** The refusal counts as the account's, because the network refused several recipients in a row. */
          Type.Literal("sender_restricted"),
          Type.Literal("missing_scope"),
          Type.Literal("app_not_enrolled"),
        ]),
        detail: Type.String(),
        /** True if it was certainly not sent, so its place in the day's quota is given back. */
        frees_quota: Type.Boolean(),
        /** True if a later run may try the recipient again. */
        retry: Type.Boolean(),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "detail"],
    erased: (mark) => ({ ...erasedRecipient(mark), detail: ERASED }),
  },
);
export type FailureReason = Static<typeof DirectMessageFailed.data>["reason"];

/** The network may or may not have accepted the message; a later look at the conversation decides. */
export const DirectMessageInDoubt = withPersonal(
  defineEvent("DirectMessageInDoubt", Type.Object({ ...outcome, detail: Type.String() }, closed)),
  {
    ...ofRecipient,
    members: ["recipient", "detail"],
    erased: (mark) => ({ ...erasedRecipient(mark), detail: ERASED }),
  },
);

const counts = {
  sent: Type.Integer(),
  skipped: Type.Integer(),
  failed: Type.Integer(),
  in_doubt: Type.Integer(),
};

/**
 * A run's requests to the network, and their maximum cost: the network does not charge twice a day for the same thing.
 */
export const usage = Type.Object(
  {
    sends: Type.Integer(),
    users: Type.Integer(),
    /** Followers read of our own account, which may be cheaper than other users. */
    followers: Type.Integer(),
    posts: Type.Integer(),
    messages: Type.Integer(),
    /** In dollars. */
    usd: Type.Number(),
  },
  closed,
);
export type Usage = Static<typeof usage>;

/** Why a run ended: no recipient is left, or a limit, a signal or an answer of the network ended it. */
export const runEnd = Type.Union([
  /** No recipient is left. */
  Type.Literal("completed"),
  Type.Literal("daily_limit_reached"),
  /** The limit of the run itself. */
  Type.Literal("limit_reached"),
  /** The other recipients may be contacted later. */
  Type.Literal("window_closed"),
  /** The share of failed messages is too high. */
  Type.Literal("too_many_failures"),
  Type.Literal("time_limit"),
  Type.Literal("stopped"),
  Type.Literal("not_authorized"),
  Type.Literal("network_unavailable"),
  /** The network refused a read, such as a search that it cannot parse. */
  Type.Literal("request_rejected"),
  /** The log was restored on this day, so the used quota is unknown. */
  Type.Literal("log_restored"),
  /** The clocks of the machine and of the log are too far apart. */
  Type.Literal("clock_skewed"),
  Type.Literal("credits_depleted"),
  Type.Literal("usage_capped"),
  Type.Literal("sender_restricted"),
  Type.Literal("missing_scope"),
  Type.Literal("app_not_enrolled"),
  Type.Literal("fault"),
]);
export type RunEnd = Static<typeof runEnd>;

/** When the window opens for the next of the other recipients (ISO 8601); present if the reason is `window_closed`. */
const until = Type.Optional(Type.String());

export const RunFinished = defineEvent(
  "RunFinished",
  Type.Object({ run_id: Type.String(), reason: runEnd, until, ...counts, usage: Type.Optional(usage) }, closed),
);

/** The process of the run died; the next process appends this event. */
export const RunAbandoned = defineEvent("RunAbandoned", Type.Object({ run_id: Type.String(), ...counts }, closed));

/** `limit`, `variant`, `basis` and `source`: as the caller requested the run. */
export const RunRefused = defineEvent(
  "RunRefused",
  Type.Object(
    {
      reason: Type.Union([
        Type.Literal("daily_limit_reached"),
        Type.Literal("window_closed"),
        Type.Literal("clock_skewed"),
      ]),
      until,
      day: Type.String(),
      used: Type.Integer(),
      ...selection,
    },
    closed,
  ),
);

export const DryRunFinished = defineEvent(
  "DryRunFinished",
  Type.Object(
    {
      run_id: Type.String(),
      reason: runEnd,
      until,
      would_send: Type.Integer(),
      would_skip: Type.Integer(),
      usage: Type.Optional(usage),
    },
    closed,
  ),
);
