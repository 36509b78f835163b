import { Type, type Static, type TObject } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";
import { ERASED, erasedPerson, withPersonal, type Owner } from "./declare-personal-members.ts";

const closed = { additionalProperties: false };

/** Recipient, by id and handle. An imported handle has no id until the network is asked for it. */
export const recipient = Type.Object(
  { id: Type.Optional(Type.String()), username: Type.Optional(Type.String()) },
  closed,
);
export type Recipient = Static<typeof recipient>;

/** Recipient that the network knows, so that the id is present. */
export const knownRecipient = Type.Object({ id: Type.String(), username: Type.String() }, closed);
export type KnownRecipient = Static<typeof knownRecipient>;

/** Marks personal data of an event as owned by the event's `recipient`; folds see it. */
const ofRecipient = {
  owner: ({ recipient: { id, username } }: { recipient: Recipient }): Owner => ({ kind: "person", id, username }),
  inFolds: true,
} as const;

function erasedRecipient(mark: string) {
  return { recipient: { id: erasedPerson(mark), username: erasedPerson(mark) } };
}

/** Personal data of events whose only personal member is the recipient. */
const ofRecipientAlone = { ...ofRecipient, members: ["recipient"], erased: erasedRecipient } as const;

export const basis = Type.Union([Type.Literal("dm_first"), Type.Literal("opt_in"), Type.Literal("none")]);
export type Basis = Static<typeof basis>;

/** Recipient's consent to have their own clicks recorded; separate from consent to messages. */
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
  /** Campaign or topic that the consent names, and outside of which it does not hold; absent if it names none. */
  consent_for: Type.Optional(Type.String()),
};

/** Evidence for consent to tracking, with the same three members as for consent to messages. */
const trackingEvidence = {
  tracking_at: Type.Optional(Type.String()),
  tracking_source: Type.Optional(Type.String()),
  tracking_text: Type.Optional(Type.String()),
};

const EVIDENCE = [
  "consent_at",
  "consent_source",
  "consent_text",
  "consent_for",
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
  /** Reason of a skip: a message of another campaign went to the recipient less than CONTACT_GAP_DAYS ago. */
  Type.Literal("too_soon"),
  Type.Literal("not_in_audience"),
]);
export type SkipReason = Static<typeof skipReason>;

export const RecipientAdded = withPersonal(
  defineEvent(
    "RecipientAdded",
    Type.Object(
      {
        recipient,
        name: Type.Optional(Type.String()),
        /**
         * Basis on which the recipient may be contacted; absent if the list names none, and the basis then stays as it
         * is.
         */
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
 * Event: a recipient's consent changed. `basis`: consent to be written to; `tracking`: consent to have their clicks
 * recorded; an absent one stays as it was. `message_id`: the reply in which they said so.
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
 * Reason for a suppression. `list`: an imported list says so, with or without its own reason. `hash`: a name of the
 * recipient has the same hash as an earlier suppression.
 */
export const suppressionReason = Type.Union([
  Type.Literal("by_hand"),
  Type.Literal("opt_out"),
  /** Reason of RecipientSuppressed: the recipient pressed the button of the page that their message links. */
  Type.Literal("opt_out_page"),
  Type.Literal("list"),
  Type.Literal("hash"),
]);

/**
 * How the service found a message to us: `stream` if the network's stream of signals reported it; absent if a run found
 * it in the inbox.
 */
const via = Type.Optional(Type.Literal("stream"));

export type SuppressionReason = Static<typeof suppressionReason>;

/** Event: the recipient is suppressed, and never gets a message again. */
export const RecipientSuppressed = withPersonal(
  defineEvent(
    "RecipientSuppressed",
    Type.Object(
      {
        /** Recipient who is suppressed; absent if a list names them by a hash alone. */
        recipient: Type.Optional(recipient),
        reason: suppressionReason,
        /** Reason for which the recipient was suppressed elsewhere, as an imported list says. */
        reason_text: Type.Optional(Type.String()),
        /** Time at which the recipient was suppressed elsewhere, as an imported list says, ISO 8601. */
        suppressed_at: Type.Optional(Type.String()),
        /** Keyed hashes of the recipient's id and handle, which outlast their other data. */
        hashes: Type.Optional(Type.Array(Type.String())),
        /** Id of the reply in which the recipient asked us to stop. */
        message_id: Type.Optional(Type.String()),
        via,
      },
      closed,
    ),
  ),
  {
    // If a list names the recipient by a hash alone, the hash is the owner's id. An erasure computes the same hash from
    // the recipient's name, and so finds this data.
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
 * Event: a reply may ask us to stop, so the recipient gets no message until an operator decides. `received_at`: when
 * the network received it, ISO 8601. `reason`: present if it came in X Chat, where the service cannot read its words.
 */
export const RecipientHeld = withPersonal(
  defineEvent(
    "RecipientHeld",
    Type.Object(
      {
        recipient,
        message_id: Type.String(),
        received_at: Type.String(),
        reason: Type.Optional(Type.Literal("x_chat")),
        via,
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

/** Event: an operator has read the recipient's reply and found that it does not ask us to stop. */
export const RecipientReleased = withPersonal(
  defineEvent("RecipientReleased", Type.Object({ recipient }, closed)),
  ofRecipientAlone,
);

/**
 * Event: a recipient wrote to us. Appended for their first message, and for their first one after ours. The text is not
 * stored.
 */
export const DirectMessageReceived = withPersonal(
  defineEvent(
    "DirectMessageReceived",
    Type.Object({ recipient, message_id: Type.String(), received_at: Type.String(), via }, closed),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "message_id"],
    erased: (mark) => ({ ...erasedRecipient(mark), message_id: ERASED }),
  },
);

/**
 * Numbers of the items that the network charges for (a request for 100 users counts 100), and the upper bound of their
 * cost. The real cost may be lower, because the network charges once a day for the same item.
 */
export const usage = Type.Object(
  {
    sends: Type.Integer(),
    users: Type.Integer(),
    /**
     * Number of followers of our own account that were read, counted separately because the network may charge less for
     * them.
     */
    followers: Type.Integer(),
    posts: Type.Integer(),
    messages: Type.Integer(),
    /** Upper bound of the cost of the requests, in US dollars. */
    usd: Type.Number(),
  },
  closed,
);
export type Usage = Static<typeof usage>;

/**
 * Event: the network signalled that a recipient has read our messages up to the time `seen_at`. Appended once, and only
 * if the newest message is among them. Without it, it is unknown if the recipient has read that message.
 */
export const DirectMessagesSeen = withPersonal(
  defineEvent("DirectMessagesSeen", Type.Object({ recipient, seen_at: Type.String() }, closed)),
  ofRecipientAlone,
);

/**
 * Event: the network's stream of signals (notifications of messages to us) is open now, or is not. `details`: what the
 * network refuses, in the network's own words.
 */
export const SignalStreamChanged = defineEvent(
  "SignalStreamChanged",
  Type.Object({ open: Type.Boolean(), details: Type.Array(Type.String()) }, closed),
);

/**
 * Event: signals of new messages arrived, for which the network charges. `messages`: their number; `chats`: how many of
 * them came in X Chat.
 */
export const SignalsReceived = defineEvent(
  "SignalsReceived",
  Type.Object({ messages: Type.Integer(), chats: Type.Integer(), usage }, closed),
);

/**
 * Event: all messages to our account up to `newest_id` were read. `backlog`: cursor at which unread older messages
 * begin; absent if there are none. `run_id`: absent if the service read them, because it may have missed notifications.
 */
export const InboxRead = defineEvent(
  "InboxRead",
  Type.Object(
    {
      run_id: Type.Optional(Type.String()),
      newest_id: Type.Optional(Type.String()),
      backlog: Type.Optional(Type.String()),
      messages: Type.Integer(),
      /**
       * Number of items that the network charged for this reading, and their cost. Absent if a run read the messages,
       * because the event that ends the run includes them.
       */
      usage: Type.Optional(usage),
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

/** Event: a run processed one page of a source of recipients. */
export const SourceRead = withPersonal(
  defineEvent(
    "SourceRead",
    Type.Object(
      {
        run_id: Type.String(),
        source: pagedSource,
        /** Search query, list or account that was read. */
        scope: Type.String(),
        /** Cursor with which the page begins; absent for the first page of a pass over the source. */
        from: Type.Optional(Type.String()),
        /** Cursor with which the next page begins; absent if this was the last one. */
        next: Type.Optional(Type.String()),
        /**
         * Entry at which a later reading of this source ends, because the log has the rest: the first recipient of this
         * page or, in a search, the newest post. In a search, only the first page has this member.
         */
        newest: Type.Optional(Type.String()),
        people: Type.Integer(),
      },
      closed,
    ),
  ),
  {
    // The owner's id is `newest`: the id of the first user on the page or, in a search, the id of the newest post.
    owner: ({ newest }: { newest?: string }): Owner => ({ kind: "person", id: newest }),
    members: ["newest"],
    inFolds: true,
    erased: (mark) => ({ newest: erasedPerson(mark) }),
  },
);

/**
 * Event: one more attempt is allowed after a failure. An operator allows it, or the run `run_id`, which found that the
 * network refuses the account and not the recipient.
 */
export const RecipientRetryAllowed = withPersonal(
  defineEvent(
    "RecipientRetryAllowed",
    Type.Object(
      {
        recipient,
        run_id: Type.Optional(Type.String()),
        /**
         * Campaign whose message failed, named even if it is `default`; absent if it is the campaign of the newest
         * attempt.
         */
        campaign: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  ofRecipientAlone,
);

export const recipientSource = Type.Union([Type.Literal("list"), Type.Literal("inbound"), ...pagedSource.anyOf]);
export type RecipientSource = Static<typeof recipientSource>;

/** Campaign to which a run or message belongs; absent if it is `default`. */
const campaign = Type.Optional(Type.String());

/** Caller's restrictions of a run: the campaign, which recipients, and how many at most. */
const selection = {
  campaign,
  limit: Type.Optional(Type.Integer()),
  variant: Type.Optional(Type.String()),
  basis: Type.Optional(basis),
  source: Type.Optional(recipientSource),
  /**
   * Number of recipients that the caller named; the run then writes to these alone. Absent if the caller named none.
   */
  recipients: Type.Optional(Type.Integer()),
};

/**
 * Settings that a run decides by. They are recorded so that an operator can later calculate what the run would have
 * done under other settings.
 */
export const runRules = Type.Object(
  {
    daily_limit: Type.Integer(),
    timezone: Type.String(),
    require_consent: Type.Union([Type.Boolean(), Type.Literal("evidence")]),
    /** CONTACT_GAP_DAYS; absent in older events, and in those of runs of `default`. */
    gap_days: Type.Optional(Type.Integer()),
    /** Share of failures that ends the run; absent if none does. */
    stop_after_failures: Type.Optional(Type.Number()),
    /** Times of day at which messages may be sent; absent if they always may. */
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
    /** Id of the run's message template. */
    template: Type.String(),
    /** The operator's name for the template; absent if it has none. */
    template_name: Type.Optional(Type.String()),
  },
  closed,
);
export type RunRules = Static<typeof runRules>;

/**
 * Event: a run started. It sends at most `limit` messages within the day's quota, and only to recipients who fit
 * `variant`, `basis` and `source`, if they are present. `rules` are absent in older events.
 */
export const RunStarted = defineEvent(
  "RunStarted",
  Type.Object({ run_id: Type.String(), dry_run: Type.Boolean(), ...selection, rules: Type.Optional(runRules) }, closed),
);

/** Event: a run waits, for a reason, until a time. */
export const RunPaused = defineEvent(
  "RunPaused",
  Type.Object(
    {
      run_id: Type.String(),
      reason: Type.Union([
        /**
         * Reason of RunPaused: the run spreads its messages over time. This event is appended only if no previous
         * message's event already states the wait (`next_at`).
         */
        Type.Literal("pace"),
        /** Reason of RunPaused: the network asks the run to wait. */
        Type.Literal("rate_limited"),
        /** Reason of RunPaused: the run waits before it retries a request that got no answer. */
        Type.Literal("network_unavailable"),
        /**
         * Reason of RunPaused: a message is in doubt. The network may show it late, so the run waits before it looks
         * for the message.
         */
        Type.Literal("settling"),
        /** Reason of RunPaused: the sending window is closed, and the run waits until messages may be sent again. */
        Type.Literal("window_closed"),
      ]),
      /** Time until which the run waits, ISO 8601. */
      until: Type.String(),
    },
    closed,
  ),
);
export type PauseReason = Static<typeof RunPaused.data>["reason"];

/** Event: an operator ends the run early. Messages in progress are settled first. */
export const RunStopRequested = defineEvent("RunStopRequested", Type.Object({ run_id: Type.String() }, closed));

/**
 * Event: a caller asks run `run_id` to write to this recipient next. It is appended with the run's start, or while the
 * run is in progress.
 */
export const RecipientRequested = withPersonal(
  defineEvent("RecipientRequested", Type.Object({ run_id: Type.String(), recipient }, closed)),
  ofRecipientAlone,
);

/**
 * A recipient's own link. `link`: the shared link that it replaces in the message; statistics count clicks on the own
 * link there.
 */
const personalLink = Type.Object({ code: Type.String(), link: Type.String() }, closed);

/** Event: the intent to send a message, appended before the network is called. */
export const DirectMessageAttempted = withPersonal(
  defineEvent(
    "DirectMessageAttempted",
    Type.Object(
      {
        attempt_id: Type.String(),
        run_id: Type.String(),
        recipient: knownRecipient,
        text: Type.String(),
        campaign,
        /** Campaign of the first message in a chain of follow-ups; absent if the message follows none. */
        follows: Type.Optional(Type.String()),
        variant: Type.String(),
        /**
         * Beginning of the SHA-256 of all variants of the template. It distinguishes variant A from that of another
         * template.
         */
        template: Type.Optional(Type.String()),
        /** The operator's name for the template. */
        template_name: Type.Optional(Type.String()),
        /**
         * Links in the message's text. They outlast the text, because clicks are compared with them; absent in older
         * events.
         */
        links: Type.Optional(Type.Array(Type.String())),
        /** The recipient's own links, which replace some of `links` in the text if the recipient granted tracking. */
        personal_links: Type.Optional(Type.Array(personalLink)),
        /** Shared links that personal ones replace, so that the text does not contain them. */
        replaced_links: Type.Optional(Type.Array(Type.String())),
        /**
         * Code in the address of the recipient's own opt-out page; absent if the message's text does not link to the
         * page.
         */
        opt_out_code: Type.Optional(Type.String()),
        /** The ground on which the recipient is contacted. */
        basis: Type.Optional(basis),
        /** Source in which the recipient was found. */
        source: Type.Optional(recipientSource),
        /** Account that sends the message. Only this account can find the message in the conversation later. */
        account_id: Type.Optional(Type.String()),
        /** Calendar day whose quota the message counts against, in `timezone`. */
        day: Type.String(),
        /** Time zone of `day`; absent if it is the same as in the previous intent to send a message. */
        timezone: Type.Optional(Type.String()),
        /**
         * Time at which the run decided to send, ISO 8601, by the run's own clock instead of the log's. Present if the
         * two may differ: the run measured a contact gap by its own clock, or an operator has corrected the log's time.
         */
        decided_at: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "text", "personal_links", "opt_out_code"],
    erased: (mark) => ({ ...erasedRecipient(mark), text: ERASED }),
  },
);

const outcome = { attempt_id: Type.String(), run_id: Type.String(), recipient: knownRecipient, campaign };

/** Event: the network accepted the message. */
export const DirectMessageSent = withPersonal(
  defineEvent(
    "DirectMessageSent",
    Type.Object(
      {
        ...outcome,
        /** Id of the message at the network; absent if an operator says that it arrived. */
        message_id: Type.Optional(Type.String()),
        /**
         * Evidence that the message was sent: the network's answer to the request, a later look at the conversation, or
         * an operator's word.
         */
        settled_by: Type.Union([Type.Literal("answer"), Type.Literal("lookup"), Type.Literal("operator")]),
        /** Reason of the operator who says that the message arrived. */
        why: Type.Optional(Type.String()),
        /** Time before which the run sends no other message, ISO 8601; absent if it need not wait. */
        next_at: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  {
    ...ofRecipient,
    members: ["recipient", "message_id", "why"],
    erased: (mark) => ({ ...erasedRecipient(mark), message_id: ERASED }),
  },
);

/**
 * Event: a recipient got no message, for `reason`. `found`: a message of ours in their conversation that a restored log
 * does not hold; from then on the recipient counts as contacted.
 */
export const DirectMessageSkipped = withPersonal(
  defineEvent(
    "DirectMessageSkipped",
    Type.Object(
      {
        run_id: Type.String(),
        recipient,
        campaign,
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
          /**
           * Reason of DirectMessageFailed: the network refused the message and gave no reason. A single such refusal
           * counts against the recipient, several in a row count against the account.
           */
          Type.Literal("not_permitted"),
          Type.Literal("rejected"),
          Type.Literal("not_delivered"),
          Type.Literal("unreachable"),
          Type.Literal("rate_limited"),
          /** Reason of DirectMessageFailed: the run or the day ended before the message was sent. */
          Type.Literal("withdrawn"),
          /** Reason of DirectMessageFailed: the recipient asked us to stop before the message was sent. */
          Type.Literal("suppressed"),
          Type.Literal("unauthorized"),
          Type.Literal("credits_depleted"),
          Type.Literal("usage_capped"),
          /**
           * Reason of DirectMessageFailed: the network refused several recipients in a row, so the refusal counts as
           * the account's.
           */
          Type.Literal("sender_restricted"),
          Type.Literal("missing_scope"),
          Type.Literal("app_not_enrolled"),
        ]),
        detail: Type.String(),
        /** True if the message was certainly not sent, so that its place in the day's quota is given back. */
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

/** Event: the network may or may not have accepted the message. A later look at the conversation decides. */
export const DirectMessageInDoubt = withPersonal(
  defineEvent("DirectMessageInDoubt", Type.Object({ ...outcome, detail: Type.String() }, closed)),
  {
    ...ofRecipient,
    members: ["recipient", "detail"],
    erased: (mark) => ({ ...erasedRecipient(mark), detail: ERASED }),
  },
);

/**
 * Event: an operator leaves a message in doubt. It stays unknown whether it arrived: it keeps its place in the quota,
 * no run looks it up, and its recipient gets no second message.
 */
export const DirectMessageLeft = withPersonal(
  defineEvent("DirectMessageLeft", Type.Object({ ...outcome, why: Type.String() }, closed)),
  {
    ...ofRecipient,
    members: ["recipient", "why"],
    erased: (mark) => ({ ...erasedRecipient(mark), why: ERASED }),
  },
);

/**
 * Event: the messages in doubt were looked up at a caller's request. Those that are neither `sent` nor `not_delivered`
 * stay in doubt; `detail` says why.
 */
export const MessagesLookedUp = defineEvent(
  "MessagesLookedUp",
  Type.Object(
    {
      in_doubt: Type.Integer(),
      sent: Type.Integer(),
      not_delivered: Type.Integer(),
      detail: Type.Optional(Type.String()),
    },
    closed,
  ),
);

const counts = {
  sent: Type.Integer(),
  skipped: Type.Integer(),
  failed: Type.Integer(),
  in_doubt: Type.Integer(),
};

/** The messages of a run by their outcome, and the recipients that it skipped. */
export type RunCounts = Static<TObject<typeof counts>>;

/** Why a run ended: no recipient is left, or a limit, a signal or an answer of the network ended it. */
export const runEnd = Type.Union([
  /** Reason of a run's end: no recipient is left. */
  Type.Literal("completed"),
  Type.Literal("daily_limit_reached"),
  /** Reason of a run's end: the run has sent as many messages as its caller allowed. */
  Type.Literal("limit_reached"),
  /**
   * Reason of a run's end: the sending window is closed; recipients who were not contacted yet may be contacted later.
   */
  Type.Literal("window_closed"),
  /** Reason of a run's end: the share of failed messages is too high. */
  Type.Literal("too_many_failures"),
  Type.Literal("time_limit"),
  Type.Literal("stopped"),
  Type.Literal("not_authorized"),
  Type.Literal("network_unavailable"),
  /** Reason of a run's end: the network refused a read, such as a search that it cannot parse. */
  Type.Literal("request_rejected"),
  /** Reason of a run's end: the log was restored on this day, so the used quota is unknown. */
  Type.Literal("log_restored"),
  /** Reason of a run's end: the clocks of the machine and of the log are too far apart. */
  Type.Literal("clock_skewed"),
  Type.Literal("credits_depleted"),
  Type.Literal("usage_capped"),
  Type.Literal("sender_restricted"),
  Type.Literal("missing_scope"),
  Type.Literal("app_not_enrolled"),
  Type.Literal("fault"),
]);
export type RunEnd = Static<typeof runEnd>;

/**
 * Time at which the sending window opens for the next recipient not yet contacted (ISO 8601); present if the reason is
 * `window_closed`.
 */
const until = Type.Optional(Type.String());

export const RunFinished = defineEvent(
  "RunFinished",
  Type.Object({ run_id: Type.String(), reason: runEnd, until, ...counts, usage: Type.Optional(usage) }, closed),
);

/**
 * Reasons why a run did not write to a requested recipient. Skips and failed messages are not among them, because they
 * have their own events.
 */
export const notReachedReason = Type.Union([
  ...runEnd.anyOf,
  Type.Literal("abandoned"),
  /** Reason of RecipientNotReached: an operator has to decide first if the recipient opted out. */
  Type.Literal("held"),
  /** Reason of RecipientNotReached: the last message to the recipient failed, and no retry is allowed. */
  Type.Literal("failed_before"),
  /** Reason of RecipientNotReached: the run is for recipients of another variant, basis or source. */
  Type.Literal("left_out"),
  /** Reason of RecipientNotReached: the campaign's audience leaves the recipient out. */
  Type.Literal("not_in_audience"),
]);
export type NotReachedReason = Static<typeof notReachedReason>;

/**
 * Event: a run did not write to a requested recipient. If `reason` is a reason why runs end, the run ended before the
 * recipient's turn.
 */
export const RecipientNotReached = withPersonal(
  defineEvent(
    "RecipientNotReached",
    Type.Object({ run_id: Type.String(), recipient, reason: notReachedReason }, closed),
  ),
  ofRecipientAlone,
);

/** Event: a run ended because its process died. The next process that is responsible for runs appends this event. */
export const RunAbandoned = defineEvent("RunAbandoned", Type.Object({ run_id: Type.String(), ...counts }, closed));

/**
 * Event: a run was requested and not started. `campaign`, `limit`, `variant`, `basis`, `source` and `recipients`: as the
 * caller requested the run.
 */
export const RunRefused = defineEvent(
  "RunRefused",
  Type.Object(
    {
      reason: Type.Union([
        Type.Literal("daily_limit_reached"),
        Type.Literal("window_closed"),
        Type.Literal("clock_skewed"),
        /** Reason of RunRefused: no campaign has the requested name. */
        Type.Literal("unknown_campaign"),
        Type.Literal("campaign_ended"),
      ]),
      until,
      day: Type.String(),
      used: Type.Integer(),
      ...selection,
    },
    closed,
  ),
);

/**
 * Event: a dry run found what a run would do with a recipient: send them `variant`, or skip them for `reason`. It lists
 * all who would get a message, and for each reason some skipped ones, but none of those contacted earlier.
 */
export const DryRunRecipientListed = withPersonal(
  defineEvent(
    "DryRunRecipientListed",
    Type.Object(
      {
        run_id: Type.String(),
        recipient,
        /**
         * Name by which the message would address the recipient; absent if it is blank. The message's text is not
         * recorded, but rendered again whenever the dry run is read.
         */
        name: Type.Optional(Type.String()),
        variant: Type.Optional(Type.String()),
        reason: Type.Optional(skipReason),
        detail: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  { ...ofRecipient, members: ["recipient", "name"], erased: erasedRecipient },
);

/** Event: a dry run ended. `estimate`, `variants` and `skips` are absent in older events, which list no recipients. */
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
      /** Network use of the run that the dry run rehearses, including what the dry run has used already. */
      estimate: Type.Optional(usage),
      /** Numbers of messages by variant. */
      variants: Type.Optional(Type.Record(Type.String(), Type.Integer())),
      /** Numbers of skipped recipients by reason. */
      skips: Type.Optional(Type.Record(Type.String(), Type.Integer())),
      /**
       * Numbers of recipients who would get no message although a run records no skip of them, by reason, such as
       * `held` or `failed_before`. Absent if there are none.
       */
      passed: Type.Optional(Type.Record(Type.String(), Type.Integer())),
    },
    closed,
  ),
);
