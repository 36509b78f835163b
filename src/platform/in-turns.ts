import { setImmediate as nextTurn } from "node:timers/promises";

/** How long work goes on at a time by default. */
const TURN_MS = 2;

/** Does work step by step, for some milliseconds at a time: in between, whoever waits for an answer has a turn. */
export async function inTurns<Result>(work: Generator<unknown, Result, void>, turnMs = TURN_MS): Promise<Result> {
  let endsAt = performance.now() + turnMs;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (performance.now() < endsAt) continue;
    await nextTurn();
    endsAt = performance.now() + turnMs;
  }
}
