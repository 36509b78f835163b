// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import {
  CLOCK_SKEW_MS_MAX,
  fileClock,
  isSkewed,
  machineClock,
  serverClock,
  skewInWords,
} from "../../src/log/log-time-and-clock-skew.ts";

const HOUR_MS = 3_600_000;
const START = Date.parse("2026-11-20T10:00:00.000Z");

/** Creates the clock of a log on a server, with a machine whose wall clock can be set and a monotonic clock. */
function openWorld() {
  const world = { log: START, wall: START, elapsed: 500, warned: 0 };
  const clock = serverClock({
    wallClock: () => world.wall,
    elapsedMs: () => world.elapsed,
    logger: { warn: () => void (world.warned += 1) },
  });
  const pass = (ms: number): void => {
    world.log += ms;
    world.wall += ms;
    world.elapsed += ms;
  };
  /** Asks the server for its time. The request travels for `thereMs`, the answer for `backMs`. */
  const look = (thereMs = 0, backMs = 0): Promise<void> =>
    clock.look({
      async now() {
        pass(thereMs);
        const answer = Math.floor(world.log);
        pass(backMs);
        return answer;
      },
    });
  return Object.assign(world, { clock, pass, look });
}

describe("the clock of a server's log", () => {
  test("is never ahead of the server and lags by at most the fastest round trip", () => {
    const ms = fc.double({ min: 0, max: 5_000, noNaN: true });
    return fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(ms, ms, ms), { minLength: 1, maxLength: 20 }), async (looks) => {
        const world = openWorld();
        let fastest = Infinity;
        for (const [pauseMs, thereMs, backMs] of looks) {
          world.pass(pauseMs);
          await world.look(thereMs, backMs);
          fastest = Math.min(fastest, thereMs + backMs);
          const behindMs = world.log - world.clock.now();
          // Both clocks count whole milliseconds, so the difference may be off by one.
          expect(behindMs).toBeGreaterThanOrEqual(-1);
          expect(behindMs).toBeLessThanOrEqual(fastest + 2);
        }
        expect(world.warned).toBe(0);
      }),
    );
  });

  test("ignores changes of the machine's clock and measures the skew", async () => {
    const world = openWorld();
    await world.look();
    world.wall += 2 * HOUR_MS;
    expect([world.clock.now(), world.clock.skewMs()]).toEqual([START, 2 * HOUR_MS]);
    world.pass(1_000);
    world.wall -= 3 * HOUR_MS;
    expect([world.clock.now(), world.clock.skewMs()]).toEqual([START + 1_000, -HOUR_MS]);
  });

  test("pauses if the server goes back by under a second, and follows a larger step", async () => {
    const world = openWorld();
    await world.look();
    expect(world.clock.now()).toBe(START);
    world.log -= 800;
    await world.look();
    expect([world.clock.now(), world.warned]).toEqual([START, 0]);
    world.pass(1_000);
    expect(world.clock.now()).toBe(world.log + 1);
    world.log -= 26 * HOUR_MS;
    await world.look();
    expect([world.clock.now(), world.warned]).toEqual([world.log + 1, 1]);
    expect(isSkewed(world.clock.skewMs())).toBe(true);
  });

  test("follows a server that jumps ahead", async () => {
    const world = openWorld();
    await world.look();
    world.log += 26 * HOUR_MS;
    await world.look();
    expect([world.clock.now(), world.warned]).toEqual([world.log, 1]);
  });

  test("is not set back by a late answer", async () => {
    const world = openWorld();
    await world.look();
    await world.look(0, HOUR_MS);
    expect([world.clock.now(), world.warned]).toEqual([START + HOUR_MS, 0]);
  });

  test("measures the skew against the newest event too", () => {
    const { clock } = openWorld();
    const newest = new Date(START + 26 * HOUR_MS).toISOString();
    expect([clock.skewMs(), clock.skewMs(newest)]).toEqual([0, -26 * HOUR_MS]);
  });

  test("learns the time from each acquired lease", async () => {
    await using store = await openPostgresStore({ url: await newDatabase() });
    const clock = serverClock({ wallClock: () => 0 });
    const terms = { holder: "one", ttlMs: 30_000 };
    const before = await store.now();
    await clock.watched(store).leases.acquire("run", terms);
    const learnt = clock.now();
    expect(before <= learnt && learnt <= (await store.now())).toBe(true);
  });

  test("shows the server's time, whatever the machine's clock shows", async () => {
    await using store = await openPostgresStore({ url: await newDatabase() });
    const clock = serverClock({ wallClock: () => 0 });
    const before = await store.now();
    await clock.look(store);
    const seen = clock.now();
    expect(before <= seen && seen <= (await store.now())).toBe(true);
    expect(clock.skewMs()).toBeLessThan(-before + 1);
  });
});

test("a trusted clock has no skew against a past event", async () => {
  let now = START;
  const clock = fileClock(() => now);
  now += HOUR_MS;
  expect([clock.now(), clock.skewMs(new Date(0).toISOString())]).toEqual([now, 0]);
});

test("a skew counts only beyond the bound and is described in words", () => {
  expect([CLOCK_SKEW_MS_MAX, -CLOCK_SKEW_MS_MAX, CLOCK_SKEW_MS_MAX + 1].map(isSkewed)).toEqual([false, false, true]);
  expect([2 * HOUR_MS, -90_400].map(skewInWords)).toEqual([
    "this machine's clock is 2 h ahead of the log's",
    "this machine's clock is 1 min 30 s behind the log's",
  ]);
});

describe("the clock of a log in a file", () => {
  /** Creates the clock of a machine that can be set and that can sleep. */
  function openMachine() {
    const world = { wall: START, elapsed: 500, asleep: 0, warned: 0 };
    const clock = machineClock({
      wallClock: () => world.wall,
      elapsedMs: () => world.elapsed,
      asleepMs: () => world.asleep,
      logger: { warn: () => void (world.warned += 1) },
    });
    const pass = (ms: number): void => {
      world.wall += ms;
      world.elapsed += ms;
    };
    const look = (): Promise<void> => clock.look({ now: async () => 0 });
    return Object.assign(world, { clock, pass, look });
  }

  test.each([26 * HOUR_MS, -26 * HOUR_MS])("does not follow a jump of %d ms and warns once", async (jump) => {
    const world = openMachine();
    world.wall += jump;
    world.pass(HOUR_MS);
    for (let n = 0; n < 3; n++) await world.look();
    expect([world.clock.now(), world.clock.skewMs(), world.warned]).toEqual([START + HOUR_MS, jump, 1]);
    world.wall -= jump;
    await world.look();
    expect([world.clock.now(), world.clock.skewMs(), world.warned]).toEqual([START + HOUR_MS, 0, 1]);
  });

  test("follows any number of small corrections", async () => {
    const world = openMachine();
    for (let n = 0; n < 20; n++) {
      world.wall += 60_000;
      await world.look();
    }
    expect([world.clock.now(), world.clock.skewMs()]).toEqual([START + 20 * 60_000, 0]);
  });

  test("follows the wall clock over a sleep but not over a jump", async () => {
    const world = openMachine();
    world.wall += 8 * HOUR_MS;
    world.asleep += 8 * HOUR_MS - 700;
    expect([world.clock.now(), world.clock.skewMs()]).toEqual([START + 8 * HOUR_MS, 0]);
    world.wall += 8 * HOUR_MS;
    expect([world.clock.now(), world.clock.skewMs()]).toEqual([START + 8 * HOUR_MS, 8 * HOUR_MS]);
  });

  test("has a skew if the newest event is ahead of it", () => {
    const newest = new Date(START + 26 * HOUR_MS).toISOString();
    for (const clock of [openMachine().clock, fileClock(() => START)]) {
      expect([clock.skewMs(), clock.skewMs(newest)]).toEqual([0, -26 * HOUR_MS]);
    }
  });
});
