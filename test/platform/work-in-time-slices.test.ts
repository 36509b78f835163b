// These tests call the code directly.
import { expect, test } from "bun:test";
import { inTimeSlices } from "../../src/platform/work-in-time-slices.ts";
import { countLoopIterations } from "eventstore-lite/testing";

function* counted(steps: number): Generator<number, string, void> {
  for (let step = 0; step < steps; step++) yield step;
  return "done";
}

test("long work yields to the event loop between steps, and returns its result", async () => {
  const turns = await countLoopIterations(async () => expect(await inTimeSlices(counted(100), 0)).toBe("done"));
  expect(turns).toBeGreaterThan(50);
});

test("short work does not yield", async () => {
  let hadTurn = false;
  setImmediate(() => (hadTurn = true));
  expect(await inTimeSlices(counted(3), Infinity)).toBe("done");
  expect(hadTurn).toBe(false);
});
