import { expect, test } from "bun:test";
import { authorize, exported, openInstallation, until, type Running } from "../harness/process.ts";
import { expectDaysKept, idle } from "./expect-daily-limit-kept.ts";
import { fakeClock } from "./fake-clock.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { libfaketime } from "./required-tools.ts";

const LIMIT = 3;

/**
 * Days that end unusually: the reason, the zone, the UTC time of midnight by the zone's published rules, and the dates
 * before and after midnight.
 */
const ENDS_OF_DAYS: readonly (readonly [why: string, zone: string, midnight: string, before: string, after: string])[] =
  [
    ["half an hour off", "America/St_Johns", "2027-01-15T03:30:00.000Z", "2027-01-14", "2027-01-15"],
    ["half an hour off, in summer time", "America/St_Johns", "2027-07-15T02:30:00.000Z", "2027-07-14", "2027-07-15"],
    ["thirteen hours ahead", "Pacific/Apia", "2027-01-14T11:00:00.000Z", "2027-01-14", "2027-01-15"],
    ["a day of 23 hours begins", "Europe/London", "2027-03-28T00:00:00.000Z", "2027-03-27", "2027-03-28"],
    ["a day of 23 hours ends", "Europe/London", "2027-03-28T23:00:00.000Z", "2027-03-28", "2027-03-29"],
    ["a day of 25 hours begins", "Europe/London", "2027-10-30T23:00:00.000Z", "2027-10-30", "2027-10-31"],
    ["a day of 25 hours ends", "Europe/London", "2027-11-01T00:00:00.000Z", "2027-10-31", "2027-11-01"],
    ["a leap day begins", "UTC", "2028-02-29T00:00:00.000Z", "2028-02-28", "2028-02-29"],
    ["a leap day ends", "UTC", "2028-03-01T00:00:00.000Z", "2028-02-29", "2028-03-01"],
  ];

test.skipIf(libfaketime === undefined).each(ENDS_OF_DAYS)(
  "%s (%s): the quota's day ends exactly at %s",
  async (_why, zone, midnight, before, after) => {
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    const clock = fakeClock(world);
    const midnightMs = Date.parse(midnight);
    clock.set(midnightMs - 60_000);
    Object.assign(world.env, { QUOTA_TIMEZONE: zone, DAILY_LIMIT: String(LIMIT) });
    await addPeople(world, 3 * LIMIT);
    const service = await world.serve();
    await authorize(service, world.sandbox);
    expect(await quotaOf(service)).toEqual({ limit: LIMIT, used: 0, remaining: LIMIT, resets_at: midnight });
    await service.post("/social/run", undefined, { prefer: "wait=300" });
    // Until midnight the service refuses every run, because the day's quota is used up.
    clock.set(midnightMs - 5_000);
    expect((await service.post("/social/run")).status).toBe(429);
    clock.set(midnightMs);
    expect(await quotaOf(service)).toMatchObject({ used: 0, remaining: LIMIT });
    await service.post("/social/run", undefined, { prefer: "wait=300" });

    const perDay = await expectDaysKept(world, LIMIT);
    console.log(`${zone}: limit ${LIMIT}, sent ${JSON.stringify(perDay)} around ${midnight}`);
    expect(perDay).toEqual({ [before]: LIMIT, [after]: LIMIT });
    for (const event of await exported(world)) {
      if (event.type !== "DirectMessageAttempted") continue;
      const { time } = event as unknown as { time: string };
      expect([time, event.data["day"]]).toEqual([time, Date.parse(time) < midnightMs ? before : after]);
    }
  },
);

const SPEED = 10;
const SLOW_RUN_MESSAGES = 12;

test.skipIf(libfaketime === undefined).each([
  ["all of time", true],
  ["the wall clock alone", false],
])(`each recipient gets at most one message while %s runs ${SPEED} times as fast`, async (_what, timersToo) => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  fakeClock(world, { speed: SPEED, timersToo });
  // Seconds between two messages. If the timers run fast too, five seconds make the run last longer than several leases
  // of it.
  const spacing = timersToo ? 5 : 1;
  Object.assign(world.env, { DAILY_LIMIT: String(SLOW_RUN_MESSAGES), SEND_SPACING_SECONDS: String(spacing) });
  await addPeople(world, SLOW_RUN_MESSAGES + 5);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  let started = 0;
  const answers = await until(
    async () => {
      // Several triggers at the same time, as from impatient callers, start only one run.
      const posts = await Promise.all(Array.from({ length: 4 }, () => service.post("/social/run")));
      const statuses = posts.map(({ status }) => status);
      started += statuses.filter((status) => status === 202).length;
      return statuses;
    },
    (statuses) => statuses.includes(429),
    90_000,
  );
  expect(answers).toContain(429);
  await idle(service);
  const perDay = await expectDaysKept(world, SLOW_RUN_MESSAGES);
  console.log(
    `clock at ${SPEED} times (${timersToo ? "timers too" : "wall clock alone"}): ${started} runs, ` +
      `sent ${JSON.stringify(perDay)}, at most ${arrivals(world).mostToOne} to one`,
  );
  expect(Math.max(...Object.values(perDay))).toBe(SLOW_RUN_MESSAGES);
});

async function quotaOf(service: Running): Promise<unknown> {
  return ((await (await service.get("/social/health")).json()) as { quota: unknown }).quota;
}
