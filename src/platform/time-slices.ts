import { setImmediate as nextTurn } from "node:timers/promises";

/** How long work goes on at a time by default. */
const SLICE_MS = 2;

/** Does work step by step, for some milliseconds at a time: in between, whoever waits for an answer has a turn. */
export async function inTimeSlices<Result>(
  work: Generator<unknown, Result, void>,
  sliceMs = SLICE_MS,
): Promise<Result> {
  let endsAt = performance.now() + sliceMs;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (performance.now() < endsAt) continue;
    await nextTurn();
    endsAt = performance.now() + sliceMs;
  }
}
