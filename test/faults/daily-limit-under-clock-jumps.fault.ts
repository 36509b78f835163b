import { expect, test } from "bun:test";
import { authorize, openInstallation, stop, until, type Running, type Installation } from "../harness/process.ts";
import { expectDaysKept, idle } from "./expect-daily-limit-kept.ts";
import { fakeClock } from "./fake-clock.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { libfaketime } from "./required-tools.ts";

const DAY_MS = 24 * 3_600_000;
const LIMIT = 6;
const PEOPLE = 60;

test.skipIf(libfaketime === undefined)(
  "no run starts while the wall clock has jumped, and each real day keeps its limit",
  async () => {
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    const clock = fakeClock(world);
    clock.set(Date.parse("2027-02-10T12:00:00Z"));
    Object.assign(world.env, { DAILY_LIMIT: String(LIMIT), SEND_SPACING_SECONDS: "1" });
    await addPeople(world, PEOPLE);
    let service = await world.serve();
    await authorize(service, world.sandbox);

    for (const jumps of [
      [DAY_MS, -DAY_MS],
      [2 * DAY_MS, -3 * DAY_MS],
      [DAY_MS / 24, 60_000],
    ]) {
      for (const jump of jumps) {
        await runUntilSent(world, service, 2);
        clock.jump(jump);
        await idle(service);
        const { status } = await service.post("/social/run", undefined, { prefer: "wait=300" });
        expect(Math.abs(jump) > 300_000 ? [503] : [200, 429]).toContain(status);
        clock.jump(-jump);
        await service.post("/social/run", undefined, { prefer: "wait=300" });
        await idle(service);
      }
      // A day passes, with the service stopped.
      await stop(service);
      clock.jump(DAY_MS);
      service = await world.serve();
    }
    expect((await (await service.get("/social/health")).json()) as object).toMatchObject({ authorized: true });
    const perDay = await expectDaysKept(world, LIMIT);
    console.log(
      `clock jumps during runs: limit ${LIMIT}, sent ${JSON.stringify(perDay)}, ` +
        `${arrivals(world).people} people, at most ${arrivals(world).mostToOne} to one`,
    );
    // Three days passed, and the quota of each was used up.
    expect(Object.values(perDay).filter((count) => count === LIMIT).length).toBe(3);
  },
);

/**
 * Starts a run and waits until it has sent `count` messages. Does nothing if the run is refused because the day's quota
 * is used up.
 */
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
