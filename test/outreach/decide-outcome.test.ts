// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import type { RunEnd } from "../../events/outreach.ts";
import { decideSendOutcome, type SendDecided } from "../../src/outreach/outcomes/decide-send-outcome.ts";

describe("the outcome of a send", () => {
  const attempt = { attempt_id: "a", run_id: "r", recipient: { id: "7", username: "user_7" } };
  const rate = undefined;
  const detail = "told so";
  const failed = (reason: string, retry: boolean) => ({
    type: "DirectMessageFailed",
    data: { ...attempt, reason, retry, frees_quota: true },
  });
  const cases: readonly (readonly [SendDecided, object, RunEnd | undefined])[] = [
    [
      { outcome: "sent", messageId: "9", rate },
      { type: "DirectMessageSent", data: { ...attempt, message_id: "9", settled_by: "answer" } },
      undefined,
    ],
    [{ outcome: "in_doubt", detail, rate }, { type: "DirectMessageInDoubt", data: { ...attempt, detail } }, undefined],
    [{ outcome: "recipient_closed", detail, rate }, failed("recipient_closed", false), undefined],
    [{ outcome: "not_permitted", detail, rate }, failed("not_permitted", false), undefined],
    [{ outcome: "rejected", detail, rate }, failed("rejected", false), undefined],
    [{ outcome: "unreachable", detail, rate }, failed("unreachable", true), "network_unavailable"],
    [{ outcome: "unauthorized", rate }, failed("unauthorized", true), "not_authorized"],
    ...(["stopped", "day_over", "lease_lost", "other_account"] as const).map(
      (why) => [{ outcome: "gave_up", why, rate }, failed("withdrawn", true), undefined] as const,
    ),
    [{ outcome: "gave_up", why: "suppressed", rate }, failed("suppressed", false), undefined],
    ...(["credits_depleted", "usage_capped", "sender_restricted", "missing_scope", "app_not_enrolled"] as const).map(
      (reason) => [{ outcome: "stopped", reason, detail, rate }, failed(reason, true), reason] as const,
    ),
  ];

  test.each(cases.map(([result, newEvent, end]) => [result.outcome, result, newEvent, end] as const))(
    "is recorded for %s",
    (_outcome, result, newEvent, end) => {
      const decided = decideSendOutcome(attempt, result, () => undefined);
      expect(decided.newEvent).toMatchObject(newEvent);
      expect(decided.end).toBe(end);
    },
  );

  test("closes the recipient for recipient_closed after a series of refusals", () => {
    const result = { outcome: "recipient_closed", detail, rate } as const;
    const { newEvent, end } = decideSendOutcome(attempt, result, () => [{ id: "8" }]);
    expect(newEvent).toMatchObject(failed("recipient_closed", false));
    expect(end).toBeUndefined();
  });

  test("restricts the sender for not_permitted after a series of refusals", () => {
    const before = [{ id: "8" }, { id: "9", username: "user_9" }];
    const result = { outcome: "not_permitted", detail, rate } as const;
    const { newEvent, more, end } = decideSendOutcome(attempt, result, () => before);
    expect(newEvent).toMatchObject(failed("sender_restricted", true));
    expect(more).toEqual(
      before.map((recipient) => ({ type: "RecipientRetryAllowed", data: { recipient, run_id: "r" } })),
    );
    expect(end).toBe("sender_restricted");
  });
});
