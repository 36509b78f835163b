// On no harness.
import { expect, test } from "bun:test";
import type { Folded } from "../../events/catalog.ts";
import { fold } from "../../projections/projection.ts";
import { runs, RUNS_MAX } from "../../projections/runs.ts";

const time = "2026-11-20T09:00:00.000Z";

const started = (run_id: string): Folded =>
  ({ type: "RunStarted", position: 1, time, data: { run_id, dry_run: false } }) as unknown as Folded;

test("a run's number is its place among all that began, and only the newest are kept", () => {
  const first = fold(runs, runs.initial(), [started("a"), started("b"), started("a")]);
  expect([...first.started]).toEqual([
    ["a", { number: 1, started_at: time }],
    ["b", { number: 2, started_at: time }],
  ]);
  const many = Array.from({ length: RUNS_MAX }, (_, at) => started(`more-${at}`));
  const later = fold(runs, first, [...many, started("last")]);
  expect(later.started.size).toBe(RUNS_MAX);
  expect(later.started.has("b")).toBe(false);
  expect(later.started.get("last")?.number).toBe(RUNS_MAX + 3);
});
