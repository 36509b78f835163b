// On no harness.
import { expect, test } from "bun:test";
import type { Folded } from "../../events/catalog.ts";
import { fold } from "../../projections/projection.ts";
import { runs, RUNS_MAX } from "../../projections/runs.ts";

const time = "2026-11-20T09:00:00.000Z";

const event = (type: string, data: object): Folded => ({ type, position: 7, time, data }) as unknown as Folded;
const started = (run_id: string, more = {}): Folded => event("RunStarted", { run_id, dry_run: false, ...more });

const BEGUN = { started_at: time, position: 7, dry_run: false, template: null, end: null };

test("a run's number is its place among all that began, and only the newest are kept", () => {
  const first = fold(runs, runs.initial(), [started("a"), started("b"), started("a")]);
  expect([...first.started]).toEqual([
    ["a", { ...BEGUN, number: 1 }],
    ["b", { ...BEGUN, number: 2 }],
  ]);
  const many = Array.from({ length: RUNS_MAX }, (_, at) => started(`more-${at}`));
  const later = fold(runs, first, [...many, started("last")]);
  expect(later.started.size).toBe(RUNS_MAX);
  expect(later.started.has("b")).toBe(false);
  expect(later.started.get("last")?.number).toBe(RUNS_MAX + 3);
});

test("a run keeps its message's name, else its id, and how it ended first; a dry run what it would have done", () => {
  const counts = { sent: 3, skipped: 2, failed: 1 };
  const { started: found } = fold(runs, runs.initial(), [
    started("named", { rules: { template: "t1", template_name: "Autumn invite" } }),
    event("RunFinished", { run_id: "named", reason: "completed", ...counts }),
    started("unnamed", { rules: { template: "t1" } }),
    event("RunAbandoned", { run_id: "unnamed", ...counts }),
    event("RunFinished", { run_id: "unnamed", reason: "completed", ...counts }),
    started("dry", { dry_run: true }),
    event("DryRunFinished", { run_id: "dry", reason: "completed", would_send: 9, would_skip: 4 }),
    event("RunFinished", { run_id: "unknown", reason: "completed", ...counts }),
  ]);
  expect([...found.values()].map(({ template, dry_run, end }) => ({ template, dry_run, end }))).toEqual([
    { template: "Autumn invite", dry_run: false, end: { reason: "completed", ...counts } },
    { template: "t1", dry_run: false, end: { reason: "abandoned", ...counts } },
    { template: null, dry_run: true, end: { reason: "completed", sent: 9, skipped: 4, failed: 0 } },
  ]);
});
