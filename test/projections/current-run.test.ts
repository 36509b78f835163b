// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { run } from "../../projections/current-run.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";

const recipient = { id: "101", username: "ann" };
const COUNTS = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };

function started(run_id: string, dry_run = false): NewEvent {
  return { type: "RunStarted", data: { run_id, dry_run } };
}

function attempted(attempt_id: string, run_id = "r1"): NewEvent {
  return {
    type: "DirectMessageAttempted",
    data: { attempt_id, run_id, recipient, text: `Hi from ${attempt_id}`, variant: "A", day: "2026-11-20" },
  };
}

function sent(attempt_id: string, run_id = "r1"): NewEvent {
  const data = { attempt_id, run_id, recipient, message_id: "m", settled_by: "answer" } as const;
  return { type: "DirectMessageSent", data };
}

function failed(attempt_id: string, run_id = "r1"): NewEvent {
  const data = { attempt_id, run_id, recipient, detail: "", frees_quota: true, retry: false } as const;
  return { type: "DirectMessageFailed", data: { ...data, reason: "rejected" } };
}

function doubted(attempt_id: string, run_id = "r1"): NewEvent {
  return { type: "DirectMessageInDoubt", data: { attempt_id, run_id, recipient, detail: "" } };
}

const skipped: NewEvent = { type: "DirectMessageSkipped", data: { run_id: "r1", recipient, reason: "no_consent" } };

const ENDS: NewEvent[] = [
  { type: "RunFinished", data: { run_id: "r1", reason: "completed", ...COUNTS } },
  { type: "RunAbandoned", data: { run_id: "r1", ...COUNTS } },
  { type: "DryRunFinished", data: { run_id: "r1", reason: "completed", would_send: 0, would_skip: 0 } },
];

describe("the run in progress", () => {
  test("begins with all counts at zero", () => {
    expect(given(run, [started("r1")]).current).toEqual({
      run_id: "r1",
      dry_run: false,
      started_at: "2026-11-20T10:00:01.000Z",
      ...COUNTS,
      places: 0,
      withdrawn: 0,
      waiting: null,
      stop_requested_at: null,
      requested: [],
    });
  });

  test("shows its wait until its next action", () => {
    const until = "2026-11-20T10:15:00.000Z";
    const paused: NewEvent = { type: "RunPaused", data: { run_id: "r1", reason: "rate_limited", until } };
    const waiting = { reason: "rate_limited" as const, until };
    expect(given(run, [started("r1"), paused]).current).toMatchObject({ waiting });
    const added = { recipient, basis: "opt_in", fields: {}, source: "list" } as const;
    expect(given(run, [started("r1"), paused, { type: "RecipientAdded", data: added }]).current).toMatchObject({
      waiting,
    });
    expect(given(run, [started("r1"), paused, attempted("a")]).current?.waiting).toBeNull();
    expect(given(run, [started("r2"), paused]).current?.waiting).toBeNull();
  });

  test("shows a wait for its pace after its own message, until its next action", () => {
    const next_at = "2026-11-20T10:15:00.000Z";
    const sent = (run_id: string): NewEvent => {
      const data = { attempt_id: "a", run_id, recipient, message_id: "m", settled_by: "answer", next_at } as const;
      return { type: "DirectMessageSent", data };
    };
    const newEvents = [started("r1"), attempted("a"), sent("r1")];
    expect(given(run, newEvents).current).toMatchObject({ sent: 1, waiting: { reason: "pace", until: next_at } });
    expect(given(run, [...newEvents, attempted("b")]).current?.waiting).toBeNull();
    expect(given(run, [started("r1"), sent("r0")]).current?.waiting).toBeNull();
  });

  test("shows the time of its first stop request and ignores those for other runs", () => {
    const asked = (run_id: string): NewEvent => ({ type: "RunStopRequested", data: { run_id } });
    const newEvents = [started("r1"), asked("r0"), asked("r1"), asked("r1")];
    expect(given(run, newEvents.slice(0, 2)).current?.stop_requested_at).toBeNull();
    expect(given(run, newEvents).current?.stop_requested_at).toBe("2026-11-20T10:00:03.000Z");
  });

  test("counts the outcomes of its messages", () => {
    const newEvents = [started("r1"), attempted("a"), sent("a"), attempted("b"), failed("b"), skipped, attempted("c")];
    expect(given(run, [...newEvents, doubted("c")]).current).toMatchObject({
      sent: 1,
      failed: 1,
      skipped: 1,
      in_doubt: 1,
    });
  });

  test("counts a message in doubt by its final outcome", () => {
    const newEvents = [started("r1"), attempted("a"), doubted("a"), attempted("b"), doubted("b"), doubted("b")];
    expect(given(run, newEvents).current).toMatchObject({ in_doubt: 2 });
    const settled = given(run, [...newEvents, sent("a"), failed("b")]).current;
    expect(settled).toMatchObject({ in_doubt: 0, sent: 1, failed: 1 });
  });

  test("counts possibly sent messages as places and withdrawn ones separately", () => {
    const of = (id: string, reason: "withdrawn" | "rejected" | "not_delivered", frees_quota: boolean): NewEvent[] => [
      attempted(id),
      {
        type: "DirectMessageFailed",
        data: { attempt_id: id, run_id: "r1", recipient, reason, detail: "", frees_quota, retry: false },
      },
    ];
    const tried = [attempted("a"), sent("a"), attempted("b"), doubted("b"), ...of("c", "not_delivered", false)];
    const untried = [...of("d", "withdrawn", true), ...of("e", "rejected", true)];
    const { current } = given(run, [started("r1"), ...tried, ...untried]);
    expect(current).toMatchObject({ places: 3, failed: 3, withdrawn: 1 });
    const next = given(run, [
      started("r1"),
      attempted("a"),
      doubted("a"),
      ...ENDS.slice(0, 1),
      started("r2"),
      failed("a"),
    ]);
    expect(next.current).toMatchObject({ places: 0, withdrawn: 0 });
  });

  test("counts an outcome once even if it is recorded twice", () => {
    expect(given(run, [started("r1"), attempted("a"), sent("a"), sent("a")]).current).toMatchObject({ sent: 1 });
  });

  test("does not count outcomes of an earlier run's messages", () => {
    const newEvents = [started("r1"), attempted("a"), doubted("a"), ...ENDS.slice(0, 1), started("r2"), sent("a")];
    expect(given(run, newEvents).current).toMatchObject({ run_id: "r2", ...COUNTS });
  });

  test.each(ENDS)("ends with $type", (end) => {
    expect(given(run, [started("r1"), end]).current).toBeNull();
  });

  test("is not started by a refusal", () => {
    const refused: NewEvent = {
      type: "RunRefused",
      data: { reason: "daily_limit_reached", day: "2026-11-20", used: 100 },
    };
    expect(given(run, [refused]).current).toBeNull();
  });
});

describe("an attempt", () => {
  test("stays open beyond the end of its run until it has an outcome", () => {
    const newEvents = [started("r1"), attempted("a"), doubted("a"), ...ENDS.slice(1, 2)];
    expect(given(run, newEvents).open).toEqual(
      new Map([
        [
          "a",
          {
            run_id: "r1",
            recipient,
            text: "Hi from a",
            attempted_at: "2026-11-20T10:00:02.000Z",
            in_doubt: true,
            doubted_at: "2026-11-20T10:00:03.000Z",
          },
        ],
      ]),
    );
    expect(given(run, [...newEvents, failed("a")]).open.size).toBe(0);
  });
});
