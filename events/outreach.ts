import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";
import { ERASED, erasedPerson, withPersonal, type Owner } from "./encryption.ts";

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

/** Personal data of the person that an event is about. */
const ofRecipient = {
  owner: ({ recipient: { id, username } }: { recipient: Recipient }): Owner => ({ kind: "person", id, username }),
  inFolds: true,
} as const;

function erasedRecipient(mark: string) {
  return { recipient: { id: erasedPerson(mark), username: erasedPerson(mark) } };
}

export const basis = Type.Union([Type.Literal("dm_first"), Type.Literal("opt_in"), Type.Literal("none")]);
export type Basis = Static<typeof basis>;

/** Whether a recipient agreed to have their own clicks recorded; apart from whether they may be written to. */
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

/** The same for tracking. */
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
        /** Absent: the list says nothing of it, so it stays as it is. */
        basis: Type.Optional(basis),
        ...consentEvidence,
        tracking: Type.Optional(tracking),
        ...trackingEvidence,
        /** IANA name of the zone that they live in. */
        timezone: Type.Optional(Type.String()),
        fields: Type.Record(Type.String(), Type.String()),
        /**
         * Columns with a blank cell: what the log holds of `name`, `timezone` or a field of that name goes, and all others stay.
         * Absent in older events, whose `fields` replace all fields.
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
 * A recipient's consent changed: `basis` to be written to, `tracking` to have their clicks recorded; absent: as before.
 * `message_id`: the reply in which they said so.
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
 * `list`: an imported list says so, with a reason of its own or with none. `hash`: a name of theirs has the hash of an
 * earlier suppression.
 */
export const suppressionReason = Type.Union([
  Type.Literal("by_hand"),
  Type.Literal("opt_out"),
  Type.Literal("list"),
  Type.Literal("hash"),
]);

/**
 * The recipient never gets a message again. `hashes`: keyed hashes of id and handle, which outlast their other data. A list
 * may name a recipient by a hash alone: then `recipient` is absent. `message_id`: the reply that asked for it.
 * `suppressed_at` (ISO 8601) and `reason_text`: when and why they were suppressed elsewhere, as a list says.
 */
export const RecipientSuppressed = withPersonal(
  defineEvent(
    "RecipientSuppressed",
    Type.Object(
      {
        recipient: Type.Optional(recipient),
        reason: suppressionReason,
        reason_text: Type.Optional(Type.String()),
        suppressed_at: Type.Optional(Type.String()),
        hashes: Type.Optional(Type.Array(Type.String())),
        message_id: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    // Without a name the text belongs to the recipient whose hash it is: an erasure computes it from the name.
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
 * A reply may ask to be left alone: the recipient gets no message until an operator suppresses or releases them.
 * `received_at`: when the network had it, ISO 8601. Its text is not kept.
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

/** An operator has read the reply: it does not ask to be left alone. */
export const RecipientReleased = withPersonal(defineEvent("RecipientReleased", Type.Object({ recipient }, closed)), {
  ...ofRecipient,
  members: ["recipient"],
  erased: erasedRecipient,
});

/** A person wrote to us: appended for their first message, and for their first one after ours. Its text is not kept. */
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
 * How far the messages to us were read: all up to `newest_id`, and those before the reading began down to where
 * `backlog` goes on (absent: nothing older is left to read).
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

/**
 * A page of a source was worked off. `scope`: the query, the list or the account that was read. `from`: where the page
 * begins; absent: it is the first of a pass. `next`: where the next one begins; absent: this was the last one. `newest`:
 * the newest entry of the page (of a search, of the pass): once the pass has come to its end, a later one reads only
 * down to that.
 */
export const SourceRead = withPersonal(
  defineEvent(
    "SourceRead",
    Type.Object(
      {
        run_id: Type.String(),
        source: pagedSource,
        scope: Type.String(),
        from: Type.Optional(Type.String()),
        next: Type.Optional(Type.String()),
        newest: Type.Optional(Type.String()),
        people: Type.Integer(),
      },
      closed,
    ),
  ),
  {
    // The newest entry of a source is a person, or a post of theirs.
    owner: ({ newest }: { newest?: string }): Owner => ({ kind: "person", id: newest }),
    members: ["newest"],
    inFolds: true,
    erased: (mark) => ({ newest: erasedPerson(mark) }),
  },
);

/**
 * One more attempt after a failure: an operator allows it, or the run `run_id` does, which found that the network
 * refuses the account and not the person.
 */
export const RecipientRetryAllowed = withPersonal(
  defineEvent("RecipientRetryAllowed", Type.Object({ recipient, run_id: Type.Optional(Type.String()) }, closed)),
  { ...ofRecipient, members: ["recipient"], erased: erasedRecipient },
);

export const recipientSource = Type.Union([Type.Literal("list"), Type.Literal("inbound"), ...pagedSource.anyOf]);
export type RecipientSource = Static<typeof recipientSource>;

/** Which recipients a caller wants a run for, and for how many at most. */
const selection = {
  limit: Type.Optional(Type.Integer()),
  variant: Type.Optional(Type.String()),
  basis: Type.Optional(basis),
  source: Type.Optional(recipientSource),
};

/**
 * The rules that a run decides by, so that a later question "what if" knows them. `template`: its id; `template_name`: as
 * the operator calls it. Absent: no share of failures ends the run, the sending window is always open, and the template has
 * no name.
 */
export const runRules = Type.Object(
  {
    daily_limit: Type.Integer(),
    timezone: Type.String(),
    require_consent: Type.Union([Type.Boolean(), Type.Literal("evidence")]),
    stop_after_failures: Type.Optional(Type.Number()),
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
    template: Type.String(),
    template_name: Type.Optional(Type.String()),
  },
  closed,
);
export type RunRules = Static<typeof runRules>;

/**
 * `limit`: messages that the run may send, beside the day's quota. `variant`, `basis` and `source`: it is for these
 * recipients only. Absent: for all. `rules`: absent in older events.
 */
export const RunStarted = defineEvent(
  "RunStarted",
  Type.Object({ run_id: Type.String(), dry_run: Type.Boolean(), ...selection, rules: Type.Optional(runRules) }, closed),
);

/**
 * A run waits: `pace` spreads the messages, where no `next_at` of a message says so, `rate_limited` is the network's wish,
 * `network_unavailable` comes before a question is asked again that had no answer, `settling` gives the network time to
 * show a message that is in doubt, `window_closed` lasts until messages may go out again. `until` in ISO 8601.
 */
export const RunPaused = defineEvent(
  "RunPaused",
  Type.Object(
    {
      run_id: Type.String(),
      reason: Type.Union([
        Type.Literal("pace"),
        Type.Literal("rate_limited"),
        Type.Literal("network_unavailable"),
        Type.Literal("settling"),
        Type.Literal("window_closed"),
      ]),
      until: Type.String(),
    },
    closed,
  ),
);
export type PauseReason = Static<typeof RunPaused.data>["reason"];

/** An operator ends the run before it has come to its end; what is under way is settled first. */
export const RunStopRequested = defineEvent("RunStopRequested", Type.Object({ run_id: Type.String() }, closed));

/** A link of one recipient's own. `link`: the shared one of the same variant and target, as its clicks are counted. */
const personalLink = Type.Object({ code: Type.String(), link: Type.String() }, closed);

/**
 * The intent: appended before the network is called. `basis` and `source`: on what ground, and where the recipient was
 * found. `day` is the calendar day whose quota it takes a place of,
 * `timezone` where it is that day (absent: as before), `template` the beginning of the SHA-256 of all variants, by
 * which a variant A differs from that of another template, and `template_name` what the operator called it.
 */
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
        template: Type.Optional(Type.String()),
        template_name: Type.Optional(Type.String()),
        /** The links of the text, which outlast it: clicks are compared with them. Absent in older events. */
        links: Type.Optional(Type.Array(Type.String())),
        /** What stands in the text in place of some of `links`, for a recipient who granted tracking. */
        personal_links: Type.Optional(Type.Array(personalLink)),
        /** Those of `links` that the text does not hold, since personal ones stand in their places. */
        replaced_links: Type.Optional(Type.Array(Type.String())),
        basis: Type.Optional(basis),
        source: Type.Optional(recipientSource),
        /** Whose message it is: only that account can find it in a conversation. */
        account_id: Type.Optional(Type.String()),
        day: Type.String(),
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

/**
 * `settled_by`: the network's answer to the send, or a later look at the conversation. `next_at`: the run sends no other
 * message before this time, ISO 8601; absent: it need not wait.
 */
export const DirectMessageSent = withPersonal(
  defineEvent(
    "DirectMessageSent",
    Type.Object(
      {
        ...outcome,
        message_id: Type.String(),
        settled_by: Type.Union([Type.Literal("answer"), Type.Literal("lookup")]),
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
 * `found`: a message of ours in their conversation which a restored log does not hold. With it they count as written to
 * from then on.
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

/**
 * `not_permitted`: the network does not say why, so it is taken for the person's; `sender_restricted`: for the
 * account's, since the network refused several people in a row. `withdrawn`: the run or the day ended, `suppressed`:
 * the person asked us to stop, before the message went out. `frees_quota`: it was certainly not sent, so the day's
 * place is given back. `retry`: the person may be tried again in a later run.
 */
export const DirectMessageFailed = withPersonal(
  defineEvent(
    "DirectMessageFailed",
    Type.Object(
      {
        ...outcome,
        reason: Type.Union([
          Type.Literal("recipient_closed"),
          Type.Literal("not_permitted"),
          Type.Literal("rejected"),
          Type.Literal("not_delivered"),
          Type.Literal("unreachable"),
          Type.Literal("rate_limited"),
          Type.Literal("withdrawn"),
          Type.Literal("suppressed"),
          Type.Literal("unauthorized"),
          Type.Literal("credits_depleted"),
          Type.Literal("usage_capped"),
          Type.Literal("sender_restricted"),
          Type.Literal("missing_scope"),
          Type.Literal("app_not_enrolled"),
        ]),
        detail: Type.String(),
        frees_quota: Type.Boolean(),
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

/** The network may or may not have taken the message; a later look at the conversation decides. */
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
 * What a run asked of the network, and what that costs at most: the network does not charge twice a day for one thing.
 * `followers`: read of our own account, which may be cheaper than other people. `usd` in dollars.
 */
export const usage = Type.Object(
  {
    sends: Type.Integer(),
    users: Type.Integer(),
    followers: Type.Integer(),
    posts: Type.Integer(),
    messages: Type.Integer(),
    usd: Type.Number(),
  },
  closed,
);
export type Usage = Static<typeof usage>;

/**
 * Why a run ended: `completed` (no recipient left), a limit, a signal, or an answer of the network. `limit_reached`: that
 * of the run itself. `window_closed`: the other recipients may be written to later. `too_many_failures`: the share of
 * failed messages is too high. `request_rejected`: the network refused a read, such as a search that it cannot parse.
 * `log_restored`: the log was restored on this day, so the used quota is unknown. `clock_skewed`: the clocks of the
 * machine and of the log are too far apart.
 */
export const runEnd = Type.Union([
  Type.Literal("completed"),
  Type.Literal("daily_limit_reached"),
  Type.Literal("limit_reached"),
  Type.Literal("window_closed"),
  Type.Literal("too_many_failures"),
  Type.Literal("time_limit"),
  Type.Literal("stopped"),
  Type.Literal("not_authorized"),
  Type.Literal("network_unavailable"),
  Type.Literal("request_rejected"),
  Type.Literal("log_restored"),
  Type.Literal("clock_skewed"),
  Type.Literal("credits_depleted"),
  Type.Literal("usage_capped"),
  Type.Literal("sender_restricted"),
  Type.Literal("missing_scope"),
  Type.Literal("app_not_enrolled"),
  Type.Literal("fault"),
]);
export type RunEnd = Static<typeof runEnd>;

/** When the window opens for the next of those recipients (ISO 8601); of a run that ended as `window_closed`. */
const until = Type.Optional(Type.String());

export const RunFinished = defineEvent(
  "RunFinished",
  Type.Object({ run_id: Type.String(), reason: runEnd, until, ...counts, usage: Type.Optional(usage) }, closed),
);

/** The process of the run died; appended by the next one. */
export const RunAbandoned = defineEvent("RunAbandoned", Type.Object({ run_id: Type.String(), ...counts }, closed));

/** `limit`, `variant`, `basis` and `source`: as the caller wanted the run. */
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
