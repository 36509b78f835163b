// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { DataOf } from "../../events/event-types-and-codec.ts";
import { fold } from "../../projections/projection.ts";
import { newestMs, quota, QUOTA_WINDOW_MS, releasedAt, usedAt, usedOn } from "../../projections/quota.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given, testLog } from "../harness/in-process/number-and-fold-events.ts";

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

describe("a place in the daily quota", () => {
  test("is used by the intent before its outcome is known", () => {
    expect(used([attempted("a"), attempted("b")])).toBe(2);
  });

  test("stays used after the message was sent", () => {
    expect(used([attempted("a"), sent("a")])).toBe(1);
  });

  test("is released by a definite refusal", () => {
    expect(used([attempted("a"), attempted("b"), failed("a", "recipient_closed", true)])).toBe(1);
  });

  test("is released once even if the refusal is recorded twice", () => {
    const refused = failed("a", "recipient_closed", true);
    expect(used([attempted("a"), attempted("b"), refused, refused])).toBe(1);
  });

  test("stays used while in doubt and after a lookup without a result", () => {
    expect(used([attempted("a"), doubted("a")])).toBe(1);
    expect(used([attempted("a"), doubted("a"), failed("a", "not_delivered", false)])).toBe(1);
  });

  test("is released for its original day, even after midnight", () => {
    const newEvents = [attempted("a"), attempted("b", "2026-11-21"), failed("a", "rate_limited", true)];
    expect([used(newEvents), used(newEvents, "2026-11-21")]).toEqual([0, 1]);
  });
});

test("an attempt without an outcome stays open until it has one", () => {
  const newEvents = [attempted("a"), attempted("b"), sent("b")];
  expect([...given(quota, newEvents).open.keys()]).toEqual(["a"]);
});

test("a day's usage survives a clock that went weeks ahead and came back", () => {
  const ahead = Array.from({ length: 28 }, (_, day) =>
    attempted(`x${day}`, `2027-02-${String(day + 1).padStart(2, "0")}`),
  );
  expect(used([attempted("a"), ...ahead, attempted("b")])).toBe(2);
});

describe("a log dated a year ahead until its clock was corrected", () => {
  const AHEAD = "2027-11-20";
  const REAL = Date.parse("2026-11-20T10:00:00.000Z");
  const HOUR_MS = 3_600_000;
  const CORRECTED: NewEvent = {
    type: "LogTimeCorrected",
    data: { at: new Date(REAL).toISOString(), day: TODAY, timezone: "UTC" },
  };

  /**
   * Creates an intent to send a message after the log's time was corrected. `ms` is the real time of the decision,
   * which the event holds in addition to the log's time.
   */
  function decided(attempt_id: string, ms: number, timezone = "UTC"): NewEvent {
    const about = attempted(attempt_id, new Date(ms).toISOString().slice(0, 10)) as NewEvent<"DirectMessageAttempted">;
    return { ...about, data: { ...about.data, timezone, decided_at: new Date(ms).toISOString() } };
  }

  function foldAhead(...newEvents: readonly NewEvent[]) {
    const log = testLog(Date.parse(`${AHEAD}T10:00:00.000Z`));
    for (const { type, data } of newEvents) log.add(type, data);
    const time = log.events[newEvents.indexOf(CORRECTED)]?.time ?? "";
    // The log's clock cannot go back. So after the correction, its time stands still until the real time has caught up.
    const events = log.events.map((event) => (event.time > time ? { ...event, time } : event));
    return { state: fold(quota, quota.initial(), events), newest: events.at(-1)?.time };
  }

  test("moves the usage of later days to the day of the correction", () => {
    const taken = [attempted("a", AHEAD), attempted("b", "2027-12-24"), attempted("c"), attempted("d", "2026-11-19")];
    const { state } = foldAhead(...taken, CORRECTED);
    expect(["2026-11-19", TODAY, AHEAD, "2027-12-24"].map((day) => usedOn(state, day))).toEqual([1, 3, 0, 0]);
    // The messages recorded under the wrong clock do not count when that day really comes: then only "e" uses its
    // quota.
    expect(usedOn(foldAhead(...taken, CORRECTED, attempted("e", AHEAD)).state, AHEAD)).toBe(1);
  });

  test("releases a later day's place for the day of the correction", () => {
    const taken = [attempted("a", AHEAD), attempted("b", AHEAD), CORRECTED];
    expect(usedOn(foldAhead(...taken, failed("a", "recipient_closed", true)).state, TODAY)).toBe(1);
  });

  test("uses the corrected time until newer times are recorded", () => {
    const { state, newest } = foldAhead(attempted("a", AHEAD), CORRECTED);
    expect(newestMs(state, newest)).toBe(REAL);
    const later = "2027-11-20T12:00:00.000Z";
    expect(newestMs(state, later)).toBe(Date.parse(later));
  });

  test("counts the last 24 real hours after a change of the time zone", () => {
    const { state } = foldAhead(
      decided("a", REAL + 365 * 24 * HOUR_MS),
      doubted("a"),
      CORRECTED,
      decided("b", REAL + HOUR_MS, "Europe/Berlin"),
    );
    const at = (ms: number) => ({ ms, day: TODAY, timezone: "Europe/Berlin" });
    expect(usedAt(state, at(REAL + 2 * HOUR_MS))).toBe(2);
    expect(releasedAt(state, at(REAL + 2 * HOUR_MS))).toBe(REAL + QUOTA_WINDOW_MS);
    expect(usedAt(state, at(REAL + QUOTA_WINDOW_MS + HOUR_MS / 2))).toBe(1);
    expect(releasedAt(state, at(REAL + QUOTA_WINDOW_MS + 2 * HOUR_MS))).toBeUndefined();
  });

  test("ends a time zone change dated ahead 24 real hours after the correction", () => {
    const ahead = REAL + 365 * 24 * HOUR_MS;
    const { state } = foldAhead(decided("a", ahead), decided("b", ahead, "Europe/Berlin"), CORRECTED);
    const at = (ms: number) => releasedAt(state, { ms, day: TODAY, timezone: "Europe/Berlin" });
    expect([at(REAL), at(REAL + QUOTA_WINDOW_MS)]).toEqual([REAL + QUOTA_WINDOW_MS, undefined]);
  });

  test("counts an outcome dated ahead at the time of its intent", () => {
    const { state } = foldAhead(attempted("x", AHEAD), CORRECTED, decided("a", REAL + HOUR_MS), doubted("a"));
    expect(state.recent.get("a")).toBe(REAL + HOUR_MS);
  });
});
