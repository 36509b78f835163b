import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { afterSuccess, afterThrottle, INITIAL_PACE, WINDOW_MAX, type Pace } from "../../src/delivery/pace.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function succeed(pace: Pace, times: number): Pace {
  let widened = pace;
  for (let time = 0; time < times; time++) widened = afterSuccess(widened);
  return widened;
}

describe("the window", () => {
  test("begins with one and widens by one each time it was filled with successes", () => {
    expect(INITIAL_PACE.window).toBe(1);
    expect([0, 1, 2, 3, 5, 6].map((successes) => succeed(INITIAL_PACE, successes).window)).toEqual([1, 2, 2, 3, 3, 4]);
  });

  test("has a limit", () => {
    expect(succeed(INITIAL_PACE, 100_000).window).toBe(WINDOW_MAX);
  });

  test("halves with each 429, down to one", () => {
    let pace = succeed(INITIAL_PACE, 1_000);
    const windows = Array.from({ length: 6 }, () => (pace = afterThrottle(pace, NOW, 0)).window);
    expect(windows).toEqual([8, 4, 2, 1, 1, 1]);
  });

  test("has to be filled anew after a 429", () => {
    const throttled = afterThrottle({ window: 4, streak: 3, pausedUntil: 0 }, NOW, 0);
    expect([1, 2].map((successes) => succeed(throttled, successes).window)).toEqual([2, 3]);
  });
});

describe("the pause", () => {
  test("is as long as the network asks for, a second when it does not say", () => {
    expect(afterThrottle(INITIAL_PACE, NOW, 17_000).pausedUntil).toBe(NOW + 17_000);
    expect(afterThrottle(INITIAL_PACE, NOW, undefined).pausedUntil).toBe(NOW + 1_000);
  });

  test("is never shortened by a later answer", () => {
    const paused = afterThrottle(INITIAL_PACE, NOW, 60_000);
    expect(afterThrottle(paused, NOW + 10, 1_000).pausedUntil).toBe(NOW + 60_000);
    expect(afterSuccess(paused).pausedUntil).toBe(NOW + 60_000);
  });
});

test("whatever the answers, the window stays within its bounds and whole", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300, size: "max" }), (answers) => {
      let pace = INITIAL_PACE;
      for (const success of answers) {
        pace = success ? afterSuccess(pace) : afterThrottle(pace, NOW, undefined);
        expect(pace.window).toBeGreaterThanOrEqual(1);
        expect(pace.window).toBeLessThanOrEqual(WINDOW_MAX);
        expect(Number.isInteger(pace.window)).toBe(true);
      }
    }),
  );
});

test("a network that takes one message a second is used at about its pace", () => {
  // The network's bucket: one message, refilled each second; a 429 asks for the rest of that second.
  let [now, free, pace, taken, refused] = [NOW, NOW, INITIAL_PACE, 0, 0];
  while (now < NOW + 600_000) {
    if (now < pace.pausedUntil) {
      now = pace.pausedUntil;
      continue;
    }
    for (let sent = 0; sent < pace.window && now >= pace.pausedUntil; sent++) {
      if (now >= free) {
        taken++;
        free = now + 1_000;
        pace = afterSuccess(pace);
      } else {
        refused++;
        pace = afterThrottle(pace, now, free - now);
      }
    }
    now += 50;
  }
  expect(taken).toBeGreaterThan(550);
  expect(refused).toBeLessThanOrEqual(taken + 1);
});
