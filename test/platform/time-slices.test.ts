// On no harness.
import { expect, test } from "bun:test";
import { inTimeSlices } from "../../src/platform/time-slices.ts";
import { turnsDuring } from "eventstore-lite/testing/turns";

function* counted(steps: number): Generator<number, string, void> {
  for (let step = 0; step < steps; step++) yield step;
  return "done";
}

test("others have a turn after each step that takes too long, and the result comes in the end", async () => {
  const turns = await turnsDuring(async () => expect(await inTimeSlices(counted(100), 0)).toBe("done"));
  expect(turns).toBeGreaterThan(50);
});

test("short work is done at once", async () => {
  let hadTurn = false;
  setImmediate(() => (hadTurn = true));
  expect(await inTimeSlices(counted(3), Infinity)).toBe("done");
  expect(hadTurn).toBe(false);
});
