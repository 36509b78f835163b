// These tests call the code directly.
import { expect, test } from "bun:test";
import type { Folded } from "../../events/event-types-and-codec.ts";
import { fold } from "../../projections/projection.ts";
import { countContacted, findNumberedRun, runs, RUNS_MAX } from "../../projections/runs.ts";

const time = "2026-11-20T09:00:00.000Z";

const event = (type: string, data: object): Folded => ({ type, position: 7, time, data }) as unknown as Folded;
const started = (run_id: string, more = {}): Folded => event("RunStarted", { run_id, dry_run: false, ...more });

const BEGUN = {
  started_at: time,
  position: 7,
  dry_run: false,
  template: null,
  limit: null,
  skips: new Map(),
  end: null,
};
const ENDED = { at: time, position: 7, usd: null };

test("runs are numbered in order of their start, dry runs are not, and only the newest of both are kept", () => {
  const dry = started("dry", { dry_run: true });
  const first = fold(runs, runs.initial(), [started("a"), dry, started("b", { limit: 15 }), started("a")]);
  expect([...first.started]).toEqual([
    ["a", { ...BEGUN, number: 1 }],
    ["dry", { ...BEGUN, number: null, dry_run: true }],
    ["b", { ...BEGUN, number: 2, limit: 15 }],
  ]);
  const many = Array.from({ length: RUNS_MAX }, (_, at) => started(`more-${at}`));
  const later = fold(runs, first, [...many, started("last")]);
  expect([later.count, later.dry]).toEqual([RUNS_MAX + 3, 1]);
  expect(later.started.size).toBe(RUNS_MAX);
  expect(later.started.has("b")).toBe(false);
  expect(later.started.get("last")?.number).toBe(RUNS_MAX + 3);
});

test("people contacted earlier are counted by their reason, and not as skipped", () => {
  const skipped = (reason: string) => event("DirectMessageSkipped", { run_id: "a", reason });
  const counts = { run_id: "a", reason: "completed", sent: 1, skipped: 3, failed: 0, in_doubt: 0 };
  const events = [
    started("a"),
    ...["already_contacted", "no_consent", "already_contacted"].map(skipped),
    event("RunFinished", counts),
  ];
  const skips = { already_contacted: 5, no_consent: 2 };
  const dry = [
    started("dry", { dry_run: true }),
    event("DryRunFinished", { run_id: "dry", reason: "completed", would_send: 1, would_skip: 7, skips }),
  ];
  const state = fold(runs, runs.initial(), [...events, ...dry]);
  const told = ["a", "dry"].map((id) => [state.started.get(id)?.end?.skipped, countContacted(state.started.get(id))]);
  expect(told).toEqual([
    [1, 2],
    [2, 5],
  ]);
});

test("a run is found by its number", () => {
  const state = fold(runs, runs.initial(), [started("a"), started("dry", { dry_run: true }), started("b")]);
  expect([1, 2, 3].map((number) => findNumberedRun(state, number))).toEqual(["a", "b", undefined]);
});

test("a run keeps its template's name or id, its first end and its cost", () => {
  const counts = { sent: 3, skipped: 2, failed: 1, in_doubt: 0 };
  const usage = { sends: 4, users: 6, followers: 0, posts: 0, messages: 0, usd: 0.12 };
  const { started: found } = fold(runs, runs.initial(), [
    started("named", { rules: { template: "t1", template_name: "Autumn invite" } }),
    event("RunFinished", { run_id: "named", reason: "completed", ...counts, usage }),
    started("unnamed", { rules: { template: "t1" } }),
    event("RunAbandoned", { run_id: "unnamed", ...counts }),
    event("RunFinished", { run_id: "unnamed", reason: "completed", ...counts }),
    started("dry", { dry_run: true }),
    event("DryRunFinished", {
      run_id: "dry",
      reason: "completed",
      would_send: 9,
      would_skip: 6,
      skips: { already_contacted: 2 },
    }),
    event("RunFinished", { run_id: "unknown", reason: "completed", ...counts }),
  ]);
  expect([...found.values()].map(({ template, dry_run, end }) => ({ template, dry_run, end }))).toEqual([
    { template: "Autumn invite", dry_run: false, end: { reason: "completed", ...counts, ...ENDED, usd: 0.12 } },
    { template: "t1", dry_run: false, end: { reason: "abandoned", ...counts, ...ENDED } },
    {
      template: null,
      dry_run: true,
      end: { reason: "completed", sent: 9, skipped: 4, failed: 0, in_doubt: 0, ...ENDED },
    },
  ]);
});

test("a message in doubt that is looked up after its run's end counts as sent or failed", () => {
  const state = fold(runs, runs.initial(), [
    started("a"),
    event("DirectMessageSent", { run_id: "a" }),
    event("RunFinished", { run_id: "a", reason: "completed", sent: 1, skipped: 0, failed: 0, in_doubt: 2 }),
    event("DirectMessageSent", { run_id: "a" }),
    event("DirectMessageFailed", { run_id: "a" }),
    event("DirectMessageFailed", { run_id: "a" }),
  ]);
  expect(state.started.get("a")?.end).toMatchObject({ sent: 2, failed: 1, in_doubt: 0 });
});

test("what has happened since the last report is counted, and the reasons for which a run skips recipients", () => {
  const skipped = (run_id: string, reason: string) => event("DirectMessageSkipped", { run_id, reason });
  const reported = (report?: object) => event("NotificationRequested", { level: "info", ...(report && { report }) });
  const happened = [
    started("a"),
    ...["no_consent", "self", "no_consent"].map((reason) => skipped("a", reason)),
    skipped("unknown", "self"),
    event("RunRefused", { reason: "window_closed" }),
    event("DirectMessageReceived", {}),
    ...["opt_out", "opt_out_page", "by_hand"].map((reason) => event("RecipientSuppressed", { reason })),
    reported(),
    reported({ run_id: "a" }),
  ];
  const { started: found, since } = fold(runs, runs.initial(), happened);
  expect(found.get("a")?.skips).toEqual(
    new Map([
      ["no_consent", 2],
      ["self", 1],
    ]),
  );
  const refused = new Map([["window_closed", 1]]);
  expect(since).toEqual({ at: null, clicks: 0, replies: 1, opt_outs: 2, refused } as never);
  const told = fold(runs, runs.initial(), [...happened, reported({ clicks: 12 })]);
  expect(told.since).toEqual({ at: time, clicks: 12, replies: 0, opt_outs: 0, refused: new Map() });
});
