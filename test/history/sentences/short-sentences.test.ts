// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { EventLike, EventType } from "../../../events/event-types-and-codec.ts";
import { toShortSentence } from "../../../src/history/event-sentences.ts";
import { formatSentence, sayReason } from "../../../src/history/sentences/sentence-parts.ts";
import { anyEvent } from "../../events/generate-events-from-schema.ts";
import { countCases } from "../../harness/case-count.ts";

const WORDS_MAX = 14;

const ada = { id: "1001", username: "ada" };
const message = { attempt_id: "a1", run_id: "r1", recipient: ada };
const request = { sources: [[15, 39]], attempt: 8, status: 429, detail: "Slack answered 429 rate_limited" };
const outcome = { channel: "chat", lane: "clicks", low_watermark: 9, requests: [request] };

/** Sentences of events that the operator `mara` or the service itself caused. */
const SENTENCES: readonly (readonly [EventType, object, string])[] = [
  ["DirectMessageSent", { ...message, settled_by: "answer" }, "sent to @ada (1001)"],
  ["DirectMessageSent", { ...message, settled_by: "lookup" }, "sent to @ada (1001), found in the conversation"],
  ["DirectMessageSent", { ...message, settled_by: "operator" }, "mara said that the message to @ada (1001) arrived"],
  [
    "DirectMessageSent",
    { ...message, settled_by: "operator", why: "she thanked us" },
    'mara said that the message to @ada (1001) arrived: "she thanked us"',
  ],
  ["DirectMessageSkipped", { ...message, reason: "no_consent" }, "skipped @ada (1001): no consent on record"],
  [
    "DirectMessageFailed",
    { ...message, reason: "recipient_closed", detail: "" },
    "not delivered to @ada (1001): their account takes no messages",
  ],
  [
    "DirectMessageInDoubt",
    { ...message, detail: "X gave no answer within 10 s" },
    "in doubt: @ada (1001). X gave no answer within 10 s",
  ],
  [
    "RecipientSuppressed",
    { recipient: ada, reason: "opt_out" },
    "@ada (1001) opted out. No run will message them again",
  ],
  ["RecipientSuppressed", { recipient: ada, reason: "by_hand" }, "mara suppressed @ada (1001)"],
  [
    "ConsentRecorded",
    { recipient: ada, basis: "opt_in", consent_at: "2026-11-14T10:00:00Z" },
    "consent of @ada (1001) recorded: opted in on 2026-11-14",
  ],
  [
    "ConsentRecorded",
    { recipient: ada, basis: "none", consent_for: "news" },
    'consent of @ada (1001) recorded: none for "news" alone',
  ],
  [
    "RunFinished",
    { run_id: "r1", reason: "credits_depleted", sent: 14, skipped: 4, failed: 0, in_doubt: 1 },
    "run r1: 14 sent, 4 skipped, 1 in doubt, then: X credits used up",
  ],
  [
    "RunAbandoned",
    { run_id: "r1", sent: 8, skipped: 3, failed: 0, in_doubt: 0 },
    "run r1 cut off by a restart: 8 sent, 3 skipped",
  ],
  [
    "DryRunFinished",
    { run_id: "r1", reason: "completed", would_send: 62, would_skip: 7 },
    "mara made a dry run: 62 would get a message, 7 would be skipped",
  ],
  [
    "NotificationRequested",
    { message: "Run 1", service: "s", level: "info", report: { run_id: "r1" } },
    'Chat was sent the report of run r1: "Run 1"',
  ],
  ["LinkClicked", { domain: "go.example", short_code: "x", bot: false }, "a person clicked go.example/x"],
  ["DispatchAbandoned", outcome, "Chat did not take 25 dispatches: 429 from Slack, rate_limited"],
  ["DispatchSucceeded", { ...outcome, channel: "webhook-crm", lane: "events" }, "Webhook crm received 25 events"],
  [
    "DispatchDiscarded",
    { channel: "chat", why: "test data", source: 1, event_id: "e" },
    'mara discarded a dead letter for Chat: "test data"',
  ],
  [
    "TokenRefreshFailed",
    { dead: true, reason: "", user_id: "1" },
    "X no longer accepts our authorization. No run starts until an operator signs in",
  ],
  ["LogVerified", { position: 16_020, result: "whole" }, "the log was checked up to position 16020: every hash fits"],
  [
    "LogVerified",
    { position: 16_020, result: "broken", broken_position: 9_112 },
    "the log does not fit at position 9112",
  ],
];

test.each(SENTENCES)("the short sentence of %s for %j", (type, data, words) => {
  const event = { type, data, meta: { caller: "mara" } } as unknown as EventLike & { meta: { caller: string } };
  expect(formatSentence(toShortSentence(event))).toBe(words);
});

test("an event without a caller is one of an operator", () => {
  const event = { type: "KeyRotated", data: { from: "0011", to: "2233" }, meta: {} } as const;
  expect(formatSentence(toShortSentence(event))).toBe("an operator rotated the master key");
});

test("a short sentence of any event has at most 14 words of ours, no id, and keeps foreign text apart", () => {
  const types = new Set<EventType>();
  fc.assert(
    fc.property(anyEvent, (event) => {
      const sentence = toShortSentence({ ...event, meta: { caller: "mara" } });
      const own = sentence.filter((part) => typeof part === "string").join("");
      expect([own, own.split(/\s+/).filter((word) => /\w/.test(word)).length > WORDS_MAX]).toEqual([own, false]);
      expect(own).toMatch(/^[a-zA-Z0-9 ,;:.()'_+-]*$/);
      expect(own).not.toMatch(/undefined|\[object/);
      types.add(event.type);
    }),
    { numRuns: countCases(2_000) },
  );
  expect(types.size).toBeGreaterThan(50);
});

test.each([
  ["Slack answered 429 rate_limited", "429 from Slack, rate_limited"],
  ["The Teams workflow answered 400", "400 from The Teams workflow"],
  ["the host did not answer within 5 s", "the host did not answer within 5 s"],
  ["", "no reason given"],
])("the cause of a failed request: %j", (detail, words) => {
  expect(formatSentence(sayReason(detail))).toBe(words);
});
