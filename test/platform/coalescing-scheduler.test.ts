// These tests call the code directly.
import { expect, test } from "bun:test";
import { createCoalescingScheduler } from "../../src/platform/coalescing-scheduler.ts";

/**
 * Makes a scheduler with held turns. A turn, which is one run of the scheduled work, stays in progress until the test
 * ends it.
 */
function heldTurns() {
  const ends: (() => void)[] = [];
  let waiting = (): void => {};
  const turns = createCoalescingScheduler(() => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    waiting();
    return promise;
  });
  return {
    turns,
    ends,
    begun(count: number): Promise<void> {
      if (ends.length >= count) return Promise.resolve();
      return new Promise((resolve) => {
        waiting = () => ends.length >= count && resolve();
      });
    },
  };
}

test("one turn runs at a time, and requests during it cause one more", async () => {
  const { turns, ends, begun } = heldTurns();
  turns.ask();
  turns.ask();
  turns.ask();
  await begun(1);
  turns.ask();
  turns.ask();
  ends[0]?.();
  await begun(2);
  ends[1]?.();
  await turns.stop();
  expect(ends.length).toBe(2);
});

test("a request after the last turn begins another turn", async () => {
  const { turns, ends, begun } = heldTurns();
  turns.ask();
  await begun(1);
  ends[0]?.();
  // Waits for more microtasks than the scheduler needs to end a turn.
  for (let task = 0; task < 20; task++) await Promise.resolve();
  turns.ask();
  await begun(2);
  expect(ends.length).toBe(2);
});

test("requests in one round of the event loop cause one turn after it", async () => {
  const { turns, ends, begun } = heldTurns();
  turns.ask();
  expect(ends.length).toBe(0);
  await Promise.resolve();
  turns.ask();
  await begun(1);
  ends[0]?.();
  await turns.stop();
  expect(ends.length).toBe(1);
});

test("a stop before a turn prevents it", async () => {
  const { turns, ends } = heldTurns();
  turns.ask();
  await turns.stop();
  expect(ends.length).toBe(0);
});

test("a stop waits for the current turn, and no turn begins after it", async () => {
  const { turns, ends, begun } = heldTurns();
  turns.ask();
  await begun(1);
  turns.ask();
  let stopped = false;
  const stopping = turns.stop().then(() => (stopped = true));
  await Promise.resolve();
  expect([turns.stopped, stopped]).toEqual([true, false]);
  ends[0]?.();
  await stopping;
  turns.ask();
  expect(ends.length).toBe(1);
});
