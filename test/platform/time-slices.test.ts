// On no harness.
import { expect, test } from "bun:test";
import { inTimeSlices } from "../../src/platform/time-slices.ts";

function* counted(steps: number): Generator<number, string, void> {
  for (let step = 0; step < steps; step++) yield step;
  return "done";
}

test("others have a turn after each step that takes too long, and the result comes in the end", async () => {
  let turns = 0;
  let isOver = false;
  const takeTurn = (): void => {
    if (isOver) return;
    turns++;
    setImmediate(takeTurn);
  };
  takeTurn();
  expect(await inTimeSlices(counted(100), 0)).toBe("done");
  isOver = true;
  expect(turns).toBeGreaterThan(50);
});

test("short work is done at once", async () => {
  let hadTurn = false;
  setImmediate(() => (hadTurn = true));
  expect(await inTimeSlices(counted(3), Infinity)).toBe("done");
  expect(hadTurn).toBe(false);
});
