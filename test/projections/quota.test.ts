// On the memory harness.
import { describe, expect, test } from "bun:test";
import type { DataOf } from "../../events/catalog.ts";
import { quota, usedOn } from "../../projections/quota.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/memory/events.ts";

const recipient = { id: "101", username: "ann" };
const TODAY = "2026-11-20";

function attempted(attempt_id: string, day = TODAY): NewEvent {
  return {
    type: "DirectMessageAttempted",
    data: { attempt_id, run_id: "r", recipient, text: "Hi", variant: "A", day },
  };
}

function failed(attempt_id: string, reason: DataOf<"DirectMessageFailed">["reason"], frees_quota: boolean): NewEvent {
  const data = { attempt_id, run_id: "r", recipient, reason, detail: "", frees_quota, retry: false };
  return { type: "DirectMessageFailed", data };
}

function sent(attempt_id: string): NewEvent {
  const data = { attempt_id, run_id: "r", recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

function doubted(attempt_id: string): NewEvent {
  return { type: "DirectMessageInDoubt", data: { attempt_id, run_id: "r", recipient, detail: "" } };
}

function used(newEvents: readonly NewEvent[], day = TODAY): number {
  return usedOn(given(quota, newEvents), day);
}

describe("a place of the day", () => {
  test("is taken by the intent, before its outcome is known", () => {
    expect(used([attempted("a"), attempted("b")])).toBe(2);
  });

  test("stays taken when the message was sent", () => {
    expect(used([attempted("a"), sent("a")])).toBe(1);
  });

  test("is given back by a definite refusal", () => {
    expect(used([attempted("a"), attempted("b"), failed("a", "recipient_closed", true)])).toBe(1);
  });

  test("is given back once, though the refusal is told twice", () => {
    const refused = failed("a", "recipient_closed", true);
    expect(used([attempted("a"), attempted("b"), refused, refused])).toBe(1);
  });

  test("is kept while in doubt, and when the lookup found nothing", () => {
    expect(used([attempted("a"), doubted("a")])).toBe(1);
    expect(used([attempted("a"), doubted("a"), failed("a", "not_delivered", false)])).toBe(1);
  });

  test("is given back to the day it was taken from, even after midnight", () => {
    const newEvents = [attempted("a"), attempted("b", "2026-11-21"), failed("a", "rate_limited", true)];
    expect([used(newEvents), used(newEvents, "2026-11-21")]).toEqual([0, 1]);
  });
});

test("an attempt without an outcome stays open until it has one", () => {
  const newEvents = [attempted("a"), attempted("b"), sent("b")];
  expect([...given(quota, newEvents).open.keys()]).toEqual(["a"]);
});

test("a day's places are remembered though the clock went ahead for weeks and came back", () => {
  const ahead = Array.from({ length: 28 }, (_, day) =>
    attempted(`x${day}`, `2027-02-${String(day + 1).padStart(2, "0")}`),
  );
  expect(used([attempted("a"), ...ahead, attempted("b")])).toBe(2);
});
