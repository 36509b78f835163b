// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { quota, usedAt, usedOn, type Quota } from "../../projections/quota.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { momentIn, nextDayAt, resetsAt } from "../../src/outreach/quota-day.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";
import { countCases } from "../harness/case-count.ts";

const DAY_MS = 24 * 3_600_000;
const MINUTE_MS = 60_000;

/** Returns the largest number of messages in any 24 hours that begin with a message. */
function mostInADay(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((time) => time >= from && time < from + DAY_MS).length));
}

describe("a run after a change of QUOTA_TIMEZONE", () => {
  const limited = { ...RULES, dailyLimit: 10 };

  /**
   * Opens a world where ten messages were sent at 08:00 UTC, then moves the quota to the zone Pacific/Pago_Pago, where
   * it was still the day before.
   */
  async function worldWithTenSent() {
    const world = await openOutreach();
    const ids = Array.from({ length: 25 }, (_, number) => String(100 + number));
    for (const id of ids) world.network.people.set(id, person(id));
    await world.list(...ids);
    expect(await (await world.start({ rules: limited })).run()).toMatchObject({ sent: 10 });
    const changed = await world.start({ rules: limited, timezone: "Pacific/Pago_Pago" });
    return { world, ...changed };
  }

  test("gets no second daily quota at once", async () => {
    const { world: opened, runner } = await worldWithTenSent();
    await using world = opened;
    expect(await runner.trigger({ dryRun: false, metadata: METADATA })).toEqual({ kind: "daily_limit_reached" });
    expect(world.network.accepted).toHaveLength(10);
    expect(await world.events("RunRefused")).toMatchObject([{ data: { day: "2026-02-28", used: 10 } }]);
  });

  test("regains each message of the quota 24 hours after it was used", async () => {
    const { world: opened, run, projector } = await worldWithTenSent();
    await using world = opened;
    world.time.jump(Date.parse("2026-03-02T08:00:04.500Z") - world.time.now());
    expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 10 });
    expect(mostInADay(world.network.accepted.map(({ createdAt }) => createdAt))).toBe(10);
    const { timezone, changed_at } = projector.state("quota");
    expect([timezone, changed_at]).toEqual(["Pacific/Pago_Pago", Date.parse("2026-03-02T08:00:04.500Z")]);
  });
});

/** Step of a generated history: time passes, QUOTA_TIMEZONE may change, and a run tries to send a message. */
interface Step {
  readonly afterMs: number;
  readonly timezone: string;
  /** Time between the intent and the outcome of the message, in ms. */
  readonly waitMs: number;
  readonly outcome: "sent" | "freed" | "in_doubt" | "lost" | "refused";
}

const ZONES = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin", "Asia/Kolkata", "America/New_York"];

const step = (zones: readonly string[]): fc.Arbitrary<Step> =>
  fc.record({
    afterMs: fc.oneof(
      fc.integer({ min: 0, max: 5 * MINUTE_MS }),
      fc.integer({ min: 0, max: 13 * 60 * MINUTE_MS }),
      fc.constant(DAY_MS),
    ),
    timezone: fc.constantFrom(...zones),
    waitMs: fc.constantFrom(0, 0, 1_000, 40 * MINUTE_MS),
    outcome: fc.constantFrom("sent", "sent", "sent", "freed", "in_doubt", "lost", "refused"),
  });

/** fast-check generator of a history's start. The clocks in Berlin change on 2026-03-29. */
const start = fc.integer({ min: Date.parse("2026-03-27T00:00:00Z"), max: Date.parse("2026-03-29T00:00:00Z") });

/** A message of the history whose place in the daily quota is never given back. */
interface Taken {
  /** Time of the request to the network. */
  readonly sentAt: number;
  readonly day: string;
}

/**
 * Plays a history by the service's rule for the quota, and calls `look` before each decision. Returns the messages and,
 * as `changes`, the time of the first intent after each change of the time zone.
 */
function play(
  from: number,
  steps: readonly Step[],
  limit: number,
  look?: (state: Quota, ms: number, step: Step) => void,
) {
  let state = quota.initial();
  let ms = from;
  let position = 0;
  const taken: Taken[] = [];
  const changes: number[] = [];
  let zone = steps[0]?.timezone;
  const append = ({ type, data }: NewEvent): void => {
    position += 1;
    const time = new Date(ms).toISOString();
    state = quota.evolve(state, { type, data, position, time, version: position } as Recorded);
  };
  for (const each of steps) {
    ms += each.afterMs;
    const { timezone, outcome } = each;
    look?.(state, ms, each);
    const now = momentIn(timezone, ms);
    if (usedAt(state, now) >= limit) continue;
    const recipient = { id: "101", username: "ann" };
    const ids = { attempt_id: `a${position}`, run_id: "r", recipient };
    if (timezone !== zone) changes.push(ms);
    zone = timezone;
    append({ type: "DirectMessageAttempted", data: { ...ids, text: "Hi", variant: "A", day: now.day, timezone } });
    // After a 429, the sender waits at most until the end of the day.
    ms = Math.min(ms + each.waitMs, nextDayAt(timezone, ms) - 1);
    const failed = { ...ids, detail: "", retry: false };
    const isFreed = outcome === "freed" || outcome === "refused";
    if (isFreed) append({ type: "DirectMessageFailed", data: { ...failed, reason: "rejected", frees_quota: true } });
    else taken.push({ sentAt: ms, day: now.day });
    if (outcome === "sent") {
      append({ type: "DirectMessageSent", data: { ...ids, message_id: "m", settled_by: "answer" } });
    } else if (outcome === "in_doubt" || outcome === "lost") {
      append({ type: "DirectMessageInDoubt", data: { ...ids, detail: "" } });
    }
    if (outcome === "lost") {
      append({ type: "DirectMessageFailed", data: { ...failed, reason: "not_delivered", frees_quota: false } });
    }
  }
  return { state, taken, changes };
}

const LIMIT = fc.integer({ min: 1, max: 4 });
const RUNS = { numRuns: countCases(250) };

test("no 24 hours around a change of the time zone hold more messages than the limit", () => {
  let touched = 0;
  const steps = fc.array(step(ZONES), { maxLength: 40, size: "max" });
  fc.assert(
    fc.property(start, steps, LIMIT, (from, happening, limit) => {
      const { taken, changes } = play(from, happening, limit);
      for (const { sentAt: to } of taken) {
        // It is enough to check the 24 hours that end with each message: no other 24 hours contain more messages.
        const isWithin = (ms: number): boolean => ms > to - DAY_MS && ms <= to;
        if (!changes.some(isWithin)) continue;
        touched += 1;
        expect(taken.filter(({ sentAt }) => isWithin(sentAt)).length).toBeLessThanOrEqual(limit);
      }
    }),
    RUNS,
  );
  expect(touched).toBeGreaterThan(RUNS.numRuns);
});

test("without a change of the time zone only the calendar day counts", () => {
  const steps = fc.constantFrom(...ZONES).chain((zone) => fc.array(step([zone]), { maxLength: 40, size: "max" }));
  fc.assert(
    fc.property(start, steps, LIMIT, (from, happening, limit) => {
      const { taken } = play(from, happening, limit, (state, ms, { timezone }) => {
        const now = momentIn(timezone, ms);
        expect(usedAt(state, now)).toBe(usedOn(state, now.day));
        expect(resetsAt(state, limit, now)).toBe(nextDayAt(timezone, ms));
      });
      const days = Map.groupBy(taken, ({ day }) => day);
      for (const messages of days.values()) expect(messages.length).toBeLessThanOrEqual(limit);
    }),
    RUNS,
  );
});

test("the quota resets at the first moment with a higher remainder", () => {
  const steps = fc.array(step(ZONES), { maxLength: 30, size: "max" });
  fc.assert(
    fc.property(start, steps, LIMIT, fc.double({ min: 0, max: 1, noNaN: true }), (from, happening, limit, share) => {
      play(from, happening, limit, (state, ms, { timezone }) => {
        const used = Math.min(usedAt(state, momentIn(timezone, ms)), limit);
        const end = resetsAt(state, limit, momentIn(timezone, ms));
        if (used === 0) return expect(end).toBe(nextDayAt(timezone, ms));
        expect(usedAt(state, momentIn(timezone, end))).toBeLessThan(used);
        for (const before of [end - 1, Math.floor(ms + (end - 1 - ms) * share)]) {
          // Before the quota resets at `end`, the count of used quota may even rise. Once the quota follows calendar
          // days again, the count includes messages that were sent on a day of the same date in another time zone.
          expect(usedAt(state, momentIn(timezone, before))).toBeGreaterThanOrEqual(used);
        }
      });
    }),
    RUNS,
  );
});

test("the state for a change of the time zone is bounded by two days' messages", () => {
  const steps = fc.array(step(["UTC"]), { minLength: 30, maxLength: 60, size: "max" });
  fc.assert(
    fc.property(start, steps, LIMIT, (from, happening, limit) => {
      expect(play(from, happening, limit).state.recent.size).toBeLessThanOrEqual(2 * limit);
    }),
    RUNS,
  );
});
