import { expect, test } from "bun:test";
import { authorize, openInstallation, until, type Running, type Installation } from "../harness/process.ts";
import { expectDaysKept, idle } from "./days.ts";
import { fakeClock } from "./fake-clock.ts";
import { addPeople, arrivals } from "./people.ts";
import { libfaketime } from "./tools.ts";

const DAY_MS = 24 * 3_600_000;
const LIMIT = 6;
const PEOPLE = 60;

test.skipIf(libfaketime === undefined)(
  "the wall clock jumps during runs: the limit of each day is kept",
  async () => {
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    const clock = fakeClock(world);
    clock.set(Date.parse("2027-02-10T12:00:00Z"));
    Object.assign(world.env, { DAILY_LIMIT: String(LIMIT), SEND_SPACING_SECONDS: "1" });
    await addPeople(world, PEOPLE);
    const service = await world.serve();
    await authorize(service, world.sandbox);

    const jumps: readonly (readonly [string, () => void])[] = [
      ["a day ahead", () => clock.jump(DAY_MS)],
      ["a day back", () => clock.jump(-DAY_MS)],
      ["to two seconds before midnight", () => clock.set(Date.parse("2027-02-12T23:59:58Z"))],
      ["back over midnight", () => clock.set(Date.parse("2027-02-12T23:59:57Z"))],
      ["an hour ahead", () => clock.jump(DAY_MS / 24)],
      ["two days ahead", () => clock.jump(2 * DAY_MS)],
      ["three days back", () => clock.jump(-3 * DAY_MS)],
    ];
    for (const [, jump] of jumps) {
      await runUntilSent(world, service, 2);
      jump();
      await idle(service);
      // Whatever a jump did to the run, the day's rest can be sent, and no more.
      await service.post("/social/run", undefined, { prefer: "wait=30" });
      await idle(service);
    }
    expect((await (await service.get("/social/health")).json()) as object).toMatchObject({ authorized: true });
    const perDay = await expectDaysKept(world, LIMIT);
    console.log(
      `clock jumps, ${jumps.length} during runs: limit ${LIMIT}, sent ${JSON.stringify(perDay)}, ` +
        `${arrivals(world).people} people, at most ${arrivals(world).mostToOne} to one`,
    );
    // Days did pass, and were used.
    expect(Object.values(perDay).filter((count) => count === LIMIT).length).toBeGreaterThanOrEqual(3);
  },
  240_000,
);

/** Starts a run and waits for some of its messages; a day that is used up refuses it, which is as well. */
async function runUntilSent(world: Installation, service: Running, count: number): Promise<void> {
  const before = arrivals(world).people;
  const started = await service.post("/social/run");
  if (started.status === 429) return;
  expect(started.status).toBe(202);
  await until(
    async () =>
      [arrivals(world).people, (await (await service.get("/social/health")).json()) as { running: boolean }] as const,
    ([people, { running }]) => !running || people >= before + count,
  );
}
