// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DataOf, EventLike, EventType } from "../../events/event-types-and-codec.ts";
import { printable } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { toSentence, describeEvent } from "../../src/history/event-sentences.ts";
import { anyEvent } from "../events/generate-events-from-schema.ts";
import { countCases } from "../harness/case-count.ts";

const ada = { id: "1001", username: "ada_builds" };
const RULES = { daily_limit: 100, timezone: "UTC", require_consent: true, template: "t1" };
const message = { attempt_id: "a1", run_id: "r1", recipient: ada };
const counts = { sent: 2, skipped: 1, failed: 0, in_doubt: 1 };
const usage = { sends: 3, users: 3, followers: 0, posts: 0, messages: 0, usd: 0.075 };
const click = { event: "click", domain: "go.example", short_code: "x", original_url: "https://shop.example/?a=b" };
/** Creates an outcome event of one request for the click at position 15. */
const outcome = <R extends object>(request: R) => {
  const about = { sources: [15], attempt: 2, mode: "single" as const };
  return { channel: "ads" as const, lane: "clicks" as const, low_watermark: 9, requests: [{ ...about, ...request }] };
};
const person = { basis: "none", fields: {}, source: "list" } as const;
const optIn = {
  basis: "opt_in",
  consent_at: "2026-03-02",
  consent_source: "https://shop.example/form",
  consent_text: "Yes, version 3",
} as const;
const failure = { ...message, detail: "", reason: "recipient_closed", frees_quota: true, retry: false } as const;

/** Type of an event -> examples of its data, each with the sentence that describes it. */
const SENTENCES: { readonly [T in EventType]: readonly (readonly [DataOf<T>, string])[] } = {
  RecipientAdded: [
    [
      { recipient: { username: "ada_builds" }, timezone: "Asia/Tokyo", basis: "opt_in", fields: {}, source: "list" },
      "@ada_builds was imported from the list in the time zone Asia/Tokyo; basis: they opted in",
    ],
    [
      {
        recipient: { username: "ada_builds" },
        name: "Ada",
        basis: "opt_in",
        fields: { company: "Acme" },
        source: "list",
      },
      '@ada_builds was imported from the list with the name "Ada", company "Acme"; basis: they opted in',
    ],
    [
      { recipient: ada, fields: { city: "Rome" }, blank: ["company", "name"], source: "list" },
      '@ada_builds (1001) was imported from the list, city "Rome", company blank, name blank',
    ],
    [{ ...person, recipient: { id: "1001" } }, "1001 was imported from the list; basis: none"],
    [
      { ...person, recipient: ada, basis: "dm_first" },
      "@ada_builds (1001) was imported from the list; basis: they wrote first",
    ],
    [{ ...person, recipient: {} }, "an unnamed person was imported from the list; basis: none"],
    [
      { ...person, recipient: ada, ...optIn, tracking: "denied" },
      '@ada_builds (1001) was imported from the list; basis: they opted in on 2026-03-02 at https://shop.example/form ("Yes, version 3"); tracking denied',
    ],
  ],
  ConsentRecorded: [
    [
      { recipient: ada, ...optIn },
      'the consent of @ada_builds (1001) was recorded; basis: they opted in on 2026-03-02 at https://shop.example/form ("Yes, version 3")',
    ],
    [
      { recipient: ada, tracking: "denied", tracking_at: "2026-04-01", tracking_source: "message", message_id: "78" },
      "the consent of @ada_builds (1001) was recorded; tracking denied on 2026-04-01 by message, message 78",
    ],
  ],
  CampaignCreated: [
    [{ name: "spring", text: "Hi", audience: {} }, 'the campaign spring was created for all recipients: "Hi"'],
    [
      {
        name: "spring-2",
        text: "Hi again",
        audience: { source: "list", basis: "opt_in", fields: ["city=Rome", "plan"], messaged: "spring", days: 5 },
        gap_days: 45,
        topic: "news",
      },
      'the campaign spring-2 was created for recipients from the source list, with the basis opt in, with city=Rome, with plan set, who got a message of spring at least 5 days ago and did not reply, 45 days after any message before, topic news: "Hi again"',
    ],
  ],
  CampaignChanged: [
    [
      { name: "spring", text: "Hi", audience: { timezones: ["Asia/Tokyo", "UTC"], clicked: "any" } },
      'the campaign spring was changed for recipients in the time zone Asia/Tokyo or UTC, who clicked a link of their own: "Hi"',
    ],
    [
      { name: "spring", text: "Hi", audience: { messaged: "default", failed: true, replied: true, clicked: "a" } },
      'the campaign spring was changed for recipients who clicked a, whose message failed in default and replied: "Hi"',
    ],
  ],
  CampaignEnded: [[{ name: "spring" }, "the campaign spring was ended; no run of it starts again"]],
  LinkAdded: [
    [
      { domain: "go.example", code: "x", target: "https://shop.example/" },
      'the link go.example/x to "https://shop.example/" was added by an operator',
    ],
    [
      { domain: "go.example", code: "x", target: "https://shop.example/", template: "t1", variant: "A" },
      'the link go.example/x to "https://shop.example/" was added for variant A of a template',
    ],
    [
      {
        domain: "go.example",
        code: "x",
        target: "https://shop.example/",
        template: "t1",
        template_name: "Autumn invite",
        variant: "A",
      },
      'the link go.example/x to "https://shop.example/" was added for variant A of the template "Autumn invite"',
    ],
  ],
  PersonalLinkClicked: [[{ code: "secret" }, "the recipient's own link was requested"]],
  ConversionRecorded: [
    [
      {
        name: "Purchase",
        value: 2490,
        currency: "EUR",
        occurred_at: "2026-11-20T08:00:00.000Z",
        domain: "go.example",
        short_code: "spring",
        click: 7,
        channels: ["ads"],
        external_id: "secret",
        code: "secret",
      },
      "a Purchase of 24.90 EUR by go.example/spring was recorded, attributed to the click at 7; queued for ads",
    ],
    [
      { name: "Lead", occurred_at: "2026-11-20T08:00:00.000Z", anonymous: true, channels: [] },
      "a Lead was recorded of a visitor who is not tracked, attributed to no click; not dispatched",
    ],
  ],
  ConversionReversed: [
    [
      { name: "Purchase", value: -500, currency: "JPY", occurred_at: "2026-11-20T08:00:00.000Z", channels: [] },
      "a Purchase of 500 JPY was reversed; no network is told",
    ],
  ],
  RecipientSuppressed: [
    [
      { recipient: ada, reason: "by_hand" },
      "@ada_builds (1001) was suppressed by an operator; no run contacts them again",
    ],
    [
      { recipient: ada, reason: "opt_out" },
      "@ada_builds (1001) was suppressed because they opted out; no run contacts them again",
    ],
    [
      { recipient: ada, reason: "opt_out", hashes: ["x"], message_id: "78" },
      "@ada_builds (1001) was suppressed because they opted out in message 78; no run contacts them again",
    ],
    [
      { recipient: ada, reason: "list", reason_text: "asked by phone", suppressed_at: "2026-03-02", hashes: ["x"] },
      '@ada_builds (1001) was suppressed by a list ("asked by phone"), as of 2026-03-02; no run contacts them again',
    ],
    [
      { recipient: ada, reason: "hash", hashes: ["x"] },
      "@ada_builds (1001) was suppressed by the hash of one of their names; no run contacts them again",
    ],
    [
      { reason: "opt_out", suppressed_at: "2026-03-02T09:15:00.000Z", hashes: ["x"] },
      "a recipient known only by a hash was suppressed because they opted out, as of 2026-03-02T09:15:00.000Z; no run contacts them again",
    ],
  ],
  RecipientHeld: [
    [
      { recipient: ada, message_id: "78", received_at: "2026-11-20T10:00:00.000Z" },
      "@ada_builds (1001) may have opted out in message 78; no run contacts them until an operator decides",
    ],
  ],
  RecipientReleased: [[{ recipient: ada }, "an operator decided that @ada_builds (1001) may be contacted"]],
  DirectMessageReceived: [
    [
      { recipient: ada, message_id: "78", received_at: "2026-11-20T10:00:00.000Z" },
      "@ada_builds (1001) sent us message 78 at 2026-11-20T10:00:00.000Z",
    ],
  ],
  DirectMessagesSeen: [
    [
      { recipient: ada, seen_at: "2026-11-20T10:00:00.000Z" },
      "@ada_builds (1001) had read our messages at 2026-11-20T10:00:00.000Z",
    ],
  ],
  SignalStreamChanged: [
    [{ open: true, details: [] }, "the stream of signals is open"],
    [{ open: false, details: ["X answered 403"] }, 'the stream of signals does not open: "X answered 403"'],
  ],
  SignalsReceived: [
    [
      { messages: 1, chats: 1, usage: { sends: 0, users: 0, followers: 0, posts: 0, messages: 1, usd: 0.01 } },
      "1 charged signals arrived, 1 of them of X Chat; the network charges at most 0.01 USD",
    ],
  ],
  InboxRead: [
    [{ messages: 2 }, "2 messages in the inbox were read after a gap in the signals"],
    [{ run_id: "r1", messages: 12, newest_id: "78", backlog: "p2" }, "run r1 read 12 messages in the inbox, up to 78"],
    [{ run_id: "r1", messages: 0 }, "run r1 read 0 messages in the inbox"],
  ],
  SourceRead: [
    [
      { run_id: "r1", source: "list_members", scope: "42", people: 7, next: "p2", newest: "9" },
      'run r1 went through 7 people of the source list members, "42"',
    ],
    [
      { run_id: "r1", source: "search", scope: 'links "-is"', people: 0 },
      'run r1 went through 0 people of the source search, "links \\"-is\\"", to its end',
    ],
  ],
  RecipientRetryAllowed: [
    [{ recipient: ada }, "an operator allowed one more message to @ada_builds (1001)"],
    [{ recipient: ada, campaign: "default" }, "an operator allowed one more message to @ada_builds (1001)"],
    [
      { recipient: ada, campaign: "spring" },
      "an operator allowed one more message of the campaign spring to @ada_builds (1001)",
    ],
    [
      { recipient: ada, run_id: "r1" },
      "run r1 allowed one more message to @ada_builds (1001), because the network had refused our account, not them",
    ],
  ],
  RunStarted: [
    [
      { run_id: "r1", dry_run: false, limit: 20, variant: "A", basis: "dm_first", source: "list" },
      "run r1 started with at most 20 messages for variant A for recipients with the basis dm first from the source list",
    ],
    [{ run_id: "r1", dry_run: false }, "run r1 started"],
    [{ run_id: "r1", dry_run: true }, "dry run r1 started"],
    [
      { run_id: "r1", dry_run: false, limit: 20, rules: { ...RULES, template_name: "Autumn invite" } },
      'run r1 started with the message "Autumn invite" with at most 20 messages',
    ],
    [{ run_id: "r1", dry_run: false, rules: RULES }, "run r1 started"],
  ],
  RunStopRequested: [[{ run_id: "r1" }, "a stop of run r1 was requested"]],
  RunPaused: [
    [
      { run_id: "r1", reason: "pace", until: "2026-11-20T10:01:00.000Z" },
      "run r1 waited until 2026-11-20T10:01:00.000Z, to spread the messages",
    ],
    [
      { run_id: "r1", reason: "rate_limited", until: "2026-11-20T10:15:00.000Z" },
      "run r1 waited until 2026-11-20T10:15:00.000Z, for the network's rate limit",
    ],
    [
      { run_id: "r1", reason: "network_unavailable", until: "2026-11-20T10:15:30.000Z" },
      "run r1 waited until 2026-11-20T10:15:30.000Z, because the network did not answer",
    ],
    [
      { run_id: "r1", reason: "settling", until: "2026-11-20T10:16:00.000Z" },
      "run r1 waited until 2026-11-20T10:16:00.000Z, for the network to show a message that is in doubt",
    ],
  ],
  DirectMessageAttempted: [
    [
      { ...message, text: 'Hi "Ada",\nall well?', variant: "B", day: "2026-11-20", timezone: "Europe/Berlin" },
      'run r1 is sending to @ada_builds (1001), quota day 2026-11-20 Europe/Berlin, variant B: "Hi \\"Ada\\",\\nall well?"',
    ],
    [
      { ...message, text: "Hi", variant: "B", template: "t1", template_name: "Autumn invite", day: "2026-11-20" },
      'run r1 is sending to @ada_builds (1001), quota day 2026-11-20, variant B of "Autumn invite": "Hi"',
    ],
  ],
  DirectMessageSent: [
    [{ ...message, message_id: "77", settled_by: "answer" }, "message 77 was sent to @ada_builds (1001)"],
    [
      { ...message, message_id: "77", settled_by: "lookup" },
      "message 77 was sent to @ada_builds (1001), as the conversation shows",
    ],
    [
      { ...message, settled_by: "operator", why: "she answered" },
      'an operator says that the message to @ada_builds (1001) arrived: "she answered"',
    ],
  ],
  DirectMessageSkipped: [
    [{ run_id: "r1", recipient: ada, reason: "no_consent" }, "run r1 skipped @ada_builds (1001), no consent on record"],
    [
      { run_id: "r1", recipient: ada, reason: "missing_field", detail: "company" },
      'run r1 skipped @ada_builds (1001), a field of the message is missing: "company"',
    ],
    [
      { run_id: "r1", recipient: ada, reason: "already_contacted", found: { message_id: "77", sent_at: "then" } },
      "run r1 skipped @ada_builds (1001), already contacted: message 77 of then is in the conversation",
    ],
  ],
  DirectMessageLeft: [
    [{ ...message, why: "too old" }, 'an operator left the message to @ada_builds (1001) in doubt: "too old"'],
  ],
  MessagesLookedUp: [
    [
      { in_doubt: 4, sent: 2, not_delivered: 1, detail: "it is older than X shows" },
      '4 messages in doubt were looked up: 2 sent, 1 not delivered, 1 still in doubt: "it is older than X shows"',
    ],
  ],
  DirectMessageFailed: [
    [
      failure,
      "the message to @ada_builds (1001) failed, recipient closed; it no longer counts against the quota, " +
        "and only an operator can allow a retry",
    ],
    [
      { ...failure, reason: "not_delivered", detail: "absent", frees_quota: false, retry: true },
      'the message to @ada_builds (1001) failed, not delivered: "absent"; it still counts against the quota, ' +
        "and a later run may retry it",
    ],
  ],
  DirectMessageInDoubt: [
    [{ ...message, detail: "time-out" }, 'the message to @ada_builds (1001) is in doubt: "time-out"'],
  ],
  RunFinished: [
    [
      { run_id: "r1", reason: "window_closed", until: "2026-11-20T09:00:00.000Z", ...counts },
      "run r1 ended, window closed until 2026-11-20T09:00:00.000Z: 2 sent, 1 skipped, 0 failed, 1 in doubt",
    ],
    [
      { run_id: "r1", reason: "daily_limit_reached", ...counts },
      "run r1 ended, daily limit reached: 2 sent, 1 skipped, 0 failed, 1 in doubt",
    ],
    [
      { run_id: "r1", reason: "completed", ...counts, usage },
      "run r1 ended, completed: 2 sent, 1 skipped, 0 failed, 1 in doubt; the network charges at most 0.075 USD",
    ],
  ],
  RunAbandoned: [
    [{ run_id: "r1", ...counts }, "run r1 was closed after its process died: 2 sent, 1 skipped, 0 failed, 1 in doubt"],
  ],
  RecipientRequested: [[{ run_id: "r1", recipient: ada }, "run r1 was asked to write to @ada_builds (1001) next"]],
  RecipientNotReached: [
    [
      { run_id: "r1", recipient: ada, reason: "limit_reached" },
      "run r1 did not write to @ada_builds (1001), it ended before: limit reached",
    ],
    [
      { run_id: "r1", recipient: ada, reason: "left_out" },
      "run r1 did not write to @ada_builds (1001), it is for other recipients",
    ],
  ],
  RunRefused: [
    [
      { reason: "window_closed", until: "2026-11-20T09:00:00.000Z", day: "2026-11-20", used: 1 },
      "a run was refused: the sending window is closed until 2026-11-20T09:00:00.000Z",
    ],
    [
      { reason: "daily_limit_reached", day: "2026-11-20", used: 100 },
      "a run was refused, daily limit reached: 100 used on 2026-11-20",
    ],
    [
      { reason: "clock_skewed", day: "2026-11-20", used: 1 },
      "a run was refused: the clocks of its machine and of the log are too far apart",
    ],
  ],
  DryRunRecipientListed: [
    [
      { run_id: "r1", recipient: ada, variant: "B" },
      "dry run r1 found that a run would send variant B to @ada_builds (1001)",
    ],
    [
      { run_id: "r1", recipient: ada, reason: "missing_field", detail: "company" },
      'dry run r1 found that a run would skip @ada_builds (1001): a field of the message is missing: "company"',
    ],
  ],
  DryRunFinished: [
    [
      { run_id: "r1", reason: "completed", would_send: 3, would_skip: 2 },
      "dry run r1 ended, completed: it would send to 3 and skip 2",
    ],
    [
      { run_id: "r1", reason: "completed", would_send: 3, would_skip: 2, usage },
      "dry run r1 ended, completed: it would send to 3 and skip 2; the network charges at most 0.075 USD",
    ],
  ],
  LinkClicked: [
    [
      { ...click, bot: false, channels: ["ads", "chat"] },
      'a person clicked go.example/x ("click") to "https://shop.example/?a=b"; queued for ads, chat',
    ],
    [
      { ...click, bot: true, channels: [] },
      'a bot clicked go.example/x ("click") to "https://shop.example/?a=b"; not dispatched',
    ],
    [
      { ...click, bot: true, probe: "prefetch", channels: [] },
      'a prefetch request clicked go.example/x ("click") to "https://shop.example/?a=b"; not dispatched',
    ],
    [
      { ...click, bot: false, anonymous: true, channels: ["chat"] },
      'a person who asked not to be tracked clicked go.example/x ("click") to "https://shop.example/?a=b"; queued for chat',
    ],
  ],
  NotificationRequested: [
    [
      { message: "disk full", service: "db", level: "error" },
      'a notification of level error was requested for "db": "disk full"; queued for chat',
    ],
    [
      { message: "Run 1", service: "reachlog report", level: "info", report: { run_id: "r1", clicks: 2 } },
      'a notification of level info was requested for "reachlog report" about run r1: "Run 1"; queued for chat',
    ],
  ],
  MessageRequested: [[{ text: "hello" }, 'a message was requested: "hello"; queued for messaging']],
  ChannelTestRequested: [[{ channels: ["ads"] }, "a test of the channels was requested; queued for ads"]],
  DispatchRetryRequested: [
    [
      { event_id: "e1", source: 15, channel: "chat" },
      "an operator retried the dead letter of position 15 (event e1); queued for chat",
    ],
    [
      { event_id: "e1", source: 15, channel: "chat", may_double: true, in_doubt: true },
      "an operator retried the dispatch in doubt of position 15 (event e1), though it may arrive twice; queued for chat",
    ],
    [
      { event_id: "e1", source: 15, channel: "ads", doubtful_since: "2026-11-20T10:00:00.000Z" },
      "an operator retried the dead letter of position 15 (event e1), though an attempt of 2026-11-20T10:00:00.000Z may " +
        "have arrived; queued for ads",
    ],
    [
      { event_id: "e1", source: 15, channel: "ads", may_double: true },
      "an operator retried the dead letter of position 15 (event e1), though it may arrive twice; queued for ads",
    ],
  ],
  DispatchSucceeded: [
    [
      outcome({ status: 200, latency_ms: 8, network_id: "T1" }),
      'ads: position 15 delivered as "T1" (attempt 2, 200 in 8 ms)',
    ],
    [outcome({ latency_ms: 8 }), "ads: position 15 delivered (attempt 2, 8 ms)"],
    [
      outcome({ mode: "batch", sources: [3, [5, 9], 15], latency_ms: 8 }),
      "ads: positions 3, 5 to 9, 15 delivered (attempt 2, 8 ms, in a batch)",
    ],
    [
      {
        ...outcome({}),
        requests: [15, 17].map((source) => ({ sources: [source], attempt: 1, mode: "single", latency_ms: 8 })),
      },
      "ads: position 15 delivered (attempt 1, 8 ms); ads: position 17 delivered (attempt 1, 8 ms)",
    ],
    [
      outcome({ status: 200, latency_ms: 8, mode: "digest", digest: "d1" }),
      "ads: position 15 delivered (attempt 2, 200 in 8 ms, in a digest d1)",
    ],
  ],
  DispatchFailed: [
    [
      outcome({ status: 503, detail: "busy", retry_at: "2026-11-20T10:00:00.000Z" }),
      'ads: position 15 not delivered (attempt 2, 503): "busy"; next attempt at 2026-11-20T10:00:00.000Z',
    ],
    [
      outcome({ detail: "silent", retry_at: "2026-11-20T10:00:00.000Z", may_have_arrived: true }),
      'ads: position 15 may have arrived (attempt 2): "silent"; next attempt at 2026-11-20T10:00:00.000Z',
    ],
    [
      outcome({ detail: "busy", retry_at: "2026-11-20T10:00:00.000Z", mode: "digest", digest: "d1" }),
      "ads: position 15 not delivered (attempt 2, in a digest d1): " +
        '"busy"; next attempt at 2026-11-20T10:00:00.000Z',
    ],
  ],
  DispatchSkipped: [
    [outcome({ mode: undefined, reason: "no_user_agent" }), "ads: position 15 not sent, no user agent"],
  ],
  DispatchInDoubt: [
    [outcome({ detail: "reset" }), 'ads: position 15 in doubt (attempt 2): "reset"; not retried automatically'],
    [
      outcome({ status: 500, latency_ms: 9, detail: "", mode: "digest", digest: "d1" }),
      "ads: position 15 in doubt (attempt 2, 500 in 9 ms, in a digest d1); not retried automatically",
    ],
  ],
  DispatchDiscarded: [
    [
      { event_id: "e1", source: 15, channel: "chat", why: "the campaign is over" },
      'an operator discarded the dead letter of position 15 (event e1) for chat: "the campaign is over"',
    ],
  ],
  DispatchSettled: [
    [
      { event_id: "e1", source: 15, channel: "chat", as: "arrived", why: "it is there" },
      'an operator closed the dispatch in doubt of position 15 (event e1) for chat as arrived: "it is there"',
    ],
    [
      { event_id: "e1", source: 15, channel: "chat", as: "left", why: "too old" },
      'an operator closed the dispatch in doubt of position 15 (event e1) for chat as left: "too old"',
    ],
  ],
  DispatchLost: [
    [
      { event_id: "e1", source: 15, channel: "messaging", detail: "131042: the account's payment is not in order" },
      `messaging: the network lost the accepted message of position 15 (event e1): "131042: the account's payment is not in order"`,
    ],
  ],
  DispatchClaimed: [
    [{ channel: "chat", lane: "clicks", token: 3, sources: [[15, 17]] }, "chat: about to send positions 15 to 17"],
  ],
  CircuitOpened: [
    [
      { channel: "chat", failures: 5, until: "2026-11-20T10:00:00.000Z" },
      "5 requests to chat failed in a row; no request before 2026-11-20T10:00:00.000Z",
    ],
  ],
  CircuitClosed: [[{ channel: "chat" }, "requests to chat succeed again"]],
  ChannelSuspended: [
    [
      { channel: "chat", network: "slack", status: 410, detail: "channel_is_archived", credential: "x" },
      'the channel chat was suspended: slack refuses all requests (410): "channel_is_archived"',
    ],
    [
      { channel: "ads", network: "meta", detail: "", credential: "x" },
      "the channel ads was suspended: meta refuses all requests",
    ],
  ],
  ChannelResumed: [
    [{ channel: "chat", why: "by_hand" }, "the channel chat was resumed by an operator"],
    [{ channel: "chat", why: "credential_changed" }, "the channel chat was resumed because its credential changed"],
    [{ channel: "chat", why: "delivered" }, "the channel chat was resumed because a test was delivered"],
  ],
  WebhookSubscribed: [
    [{ types: ["LinkClicked", "RunFinished"], receiver: "x" }, "the webhook now carries LinkClicked, RunFinished"],
    [
      { channel: "webhook-crm", types: ["LinkClicked"], receiver: "x", filter: "data.data.bot" },
      'webhook-crm now carries LinkClicked, filtered by "data.data.bot"',
    ],
  ],
  WebhookUnsubscribed: [
    [{}, "the webhook now carries no events"],
    [{ channel: "webhook-crm" }, "webhook-crm now carries no events"],
  ],
  DispatchAbandoned: [
    [
      outcome({ status: 410, latency_ms: 9, detail: "gone", refused: true }),
      'ads: position 15 became a dead letter, refused for good (attempt 2, 410 in 9 ms): "gone"',
    ],
    [outcome({ detail: "", refused: false }), "ads: position 15 became a dead letter, out of attempts (attempt 2)"],
    [
      outcome({ detail: "", refused: false, doubtful_since: "2026-11-20T10:00:00.000Z" }),
      "ads: position 15 became a dead letter, out of attempts (attempt 2), though an attempt of " +
        "2026-11-20T10:00:00.000Z may have arrived",
    ],
    [
      outcome({ detail: "gone", refused: true, mode: "digest", digest: "d1" }),
      'ads: position 15 became a dead letter, refused for good (attempt 2, in a digest d1): "gone"',
    ],
  ],
  RequestAnswered: [
    [
      { digest: "d", status: 202, headers: {}, body: "{}" },
      "a request with an idempotency key was answered with status 202",
    ],
  ],
  AuthenticationsFailed: [
    [
      { address: "192.0.2.1", addresses: 1, failed: 1, turned_away: 0, since: "s", until: "u" },
      "192.0.2.1 tried 1 wrong token",
    ],
    [
      { addresses: 12, failed: 40, turned_away: 3, since: "s", until: "u" },
      "12 addresses tried 43 wrong tokens; 3 of them got 429",
    ],
  ],
  PersonalDataRead: [
    [
      { resource: "recipient", recipient: ada },
      "personal data about @ada_builds (1001) was read: the record of one recipient",
    ],
    [
      { resource: "recipients", filters: ["search", "status"], records: 3 },
      "personal data was read: the list of recipients, filtered by search, status, 3 records",
    ],
    [{ resource: "search", records: 1 }, "personal data was read: a search, 1 record"],
  ],
  TokenUsed: [
    [
      { name: "web", token_id: "3f2a9c", day: "2026-11-26" },
      "the token 3f2a9c of web was used for the first time on 2026-11-26",
    ],
  ],
  KeyRotated: [[{ from: "0011", to: "2233" }, "the master key 0011 was replaced by 2233"]],
  LogRestored: [
    [
      { cause: "restore", epoch: "e", found_position: 9, found_hash: "h" },
      "a service opened the log after a restore from a backup: it ended at position 9, and events since the copy was made may be missing",
    ],
    [
      { cause: "import", epoch: "e", found_position: 9, found_hash: "h" },
      "a service opened the log after an import: it ended at position 9, and events since the copy was made may be missing",
    ],
    [
      { cause: "copy", epoch: "e", found_position: 9, found_hash: "h" },
      "a service opened the log in a new place: it ended at position 9, and events since the copy was made may be missing",
    ],
    [
      { cause: "operator", epoch: "e", found_position: 9, found_hash: "h" },
      "a service opened the log after a restore that an operator reported: it ended at position 9, and events since the copy was made may be missing",
    ],
  ],
  LogLossAccepted: [
    [
      { reason: "lost_tail", expected_position: 12, found_position: 9, found_hash: "h" },
      "an operator accepted a loss of the log, lost tail: it ended at position 9; its checkpoint had 12 events",
    ],
    [
      { reason: "lost_tail", found_position: 9, found_hash: "h" },
      "an operator accepted a loss of the log, lost tail: it ended at position 9",
    ],
  ],
  LogTimeCorrected: [
    [
      { at: "2026-11-20T10:00:00.000Z", day: "2026-11-20", timezone: "UTC" },
      "an operator declared the clock right, which showed 2026-11-20T10:00:00.000Z: the day is 2026-11-20",
    ],
  ],
  WhatIfAsked: [
    [
      { rules: ["DAILY_LIMIT", "SEND_WINDOW"], position: 9 },
      "a caller asked what other rules (DAILY_LIMIT, SEND_WINDOW) would have done up to position 9",
    ],
    [{ rules: [], position: 9 }, "a caller asked what the same rules would have done up to position 9"],
  ],
  ProjectionRebuilt: [
    [
      { projection: "stats", version: 1, position: 9 },
      "the projection stats (version 1) was rebuilt up to position 9: there was no stored state to compare with",
    ],
    [
      { projection: "stats", version: 1, position: 9, differences: 0 },
      "the projection stats (version 1) was rebuilt up to position 9: no difference to the stored state",
    ],
    [
      { projection: "stats", version: 1, position: 9, differences: 1 },
      "the projection stats (version 1) was rebuilt up to position 9: 1 difference to the stored state, corrected",
    ],
    [
      { projection: "stats", version: 1, position: 9, differences: 2 },
      "the projection stats (version 1) was rebuilt up to position 9: 2 differences to the stored state, corrected",
    ],
  ],
  AccountAuthorized: [
    [
      { user: { id: "9001", username: "acme", name: "Acme" }, scopes: ["dm.read", "dm.write"], expires_at: "soon" },
      "the account @acme (9001) was linked with the scopes dm.read dm.write; its access token lasts until soon",
    ],
  ],
  TokenRefreshed: [
    [{ user_id: "9001", expires_at: "soon" }, "the access token of account 9001 was renewed and lasts until soon"],
  ],
  TokenRefreshFailed: [
    [{ user_id: "9001", reason: "busy", dead: false }, 'the access token of account 9001 could not be renewed: "busy"'],
    [
      { user_id: "9001", reason: "invalid_grant", dead: true },
      'the access token of account 9001 could not be renewed: "invalid_grant"; the grant is dead: ' +
        "authorize the account again",
    ],
  ],
  PersonForgotten: [
    [{ hashes: ["m"], keys: ["p1"] }, "a recipient was erased: 1 key was deleted, and no run contacts them again"],
    [{ hashes: [], keys: ["c1", "c2"] }, "a recipient was erased: 2 keys were deleted, and no run contacts them again"],
    [
      { hashes: [], keys: ["p1"], ground: "consent_withdrawn", requested_by: "recipient" },
      "a recipient was erased as requested by the recipient (consent withdrawn): 1 key was deleted, and no run contacts them again",
    ],
    [
      { hashes: [], keys: ["p1"], scope: "tracking" },
      "the clicks of a recipient on their own links were erased, because they revoked tracking: 1 key was deleted",
    ],
  ],
  PersonalDataExpired: [
    [{ before: "2026-11-01", days: 1 }, "the personal data of 1 day before 2026-11-01 expired and was erased"],
    [{ before: "2026-11-01", days: 2 }, "the personal data of 2 days before 2026-11-01 expired and was erased"],
  ],
  LogVerified: [
    [{ position: 12, hash: "ab", checked: 12, result: "whole" }, "the log was verified up to position 12: it is whole"],
    [
      { position: 12, hash: "ab", checked: 6, result: "broken", fault: "altered", broken_position: 7 },
      'the log was verified up to position 12: it is broken after 6 good events: "altered"',
    ],
  ],
  BackupMade: [
    [{ position: 12, hash: "ab", made_at: "2026-11-20T12:00:00.000Z" }, "a backup was made up to position 12"],
  ],
  EventsArchived: [
    [
      { position: 12, events: 12, segments: 1, bytes: 900 },
      "12 events were moved into 1 segment: the archive ends at position 12",
    ],
    [
      { position: 40, events: 28, segments: 2, bytes: 1_900 },
      "28 events were moved into 2 segments: the archive ends at position 40",
    ],
  ],
  BackupRehearsed: [
    [
      { position: 12, hash: "ab", made_at: "2026-11-20T12:00:00.000Z" },
      "the backup up to position 12 was rehearsed: it can be restored",
    ],
  ],
  PersonalKeysLost: [
    [
      { lost: "0badcafe", replaced_by: "1badcafe" },
      "an operator accepted the loss of the key file 0badcafe: data encrypted with it reads as erased; 1badcafe replaces it",
    ],
  ],
  AccountUnlinked: [
    [{ user_id: "9001", revoked: true }, "the account 9001 was unlinked; the network revoked its tokens"],
    [
      { user_id: "9001", revoked: false },
      "the account 9001 was unlinked; the network did not confirm that its tokens are revoked",
    ],
  ],
};

describe.each(Object.entries(SENTENCES))("the sentence of %s", (type, cases) => {
  test.each(cases as [never, string][])("for the data %j", (data, sentence) => {
    expect(describeEvent({ type, data } as EventLike)).toBe(sentence);
  });
});

test("the sentence for any event is one line without terminal control characters", () => {
  const steering = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
  let hostile = 0;
  fc.assert(
    fc.property(anyEvent, (event) => {
      if (steering.test(describeEvent(event))) hostile++;
      const line = printable(describeEvent(event));
      expect(line).not.toMatch(steering);
      expect(line).not.toMatch(/undefined|\[object/);
    }),
    { numRuns: countCases(2_000) },
  );
  // Proves that the check was needed: some events contained control characters.
  expect(hostile).toBeGreaterThan(10);
});

test("the sentence for any event keeps foreign text apart from its own words", () => {
  let named = 0;
  fc.assert(
    fc.property(anyEvent, (event) => {
      const sentence = toSentence(event);
      const own = sentence.filter((part) => typeof part === "string").join("");
      expect(own).toMatch(/^[a-zA-Z0-9 ,;:.()'_+-]*$/);
      named += sentence.length;
    }),
    { numRuns: countCases(2_000) },
  );
  expect(named).toBeGreaterThan(2_000);
});

test("the named parts of a sentence refer to runs, times, links, recipients and positions", () => {
  const named = (event: Parameters<typeof toSentence>[0]) =>
    toSentence(event).filter((part) => typeof part !== "string" && part.kind !== "other");
  expect(
    named({ type: "RunPaused", data: { run_id: "r1", reason: "pace", until: "2026-11-20T10:00:00.000Z" } }),
  ).toEqual([
    { kind: "run", text: "run r1", run_id: "r1" },
    { kind: "time", text: "2026-11-20T10:00:00.000Z", at: "2026-11-20T10:00:00.000Z" },
  ]);
  expect(named({ type: "LinkClicked", data: { ...click, bot: false, channels: [] } })).toEqual([
    { kind: "link", text: "go.example/x", domain: "go.example", short_code: "x" },
  ]);
  expect(named({ type: "RecipientSuppressed", data: { recipient: ada, reason: "by_hand" } })).toEqual([
    { kind: "recipient", text: "@ada_builds (1001)", recipient: ada },
  ]);
  expect(
    named({ type: "DispatchSkipped", data: outcome({ sources: [3, [5, 7]], reason: "bot" } as never) as never }),
  ).toEqual([3, 5, 7].map((position) => ({ kind: "position", text: String(position), position })));
});
