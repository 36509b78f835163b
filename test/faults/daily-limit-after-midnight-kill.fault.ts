import { expect, test } from "bun:test";
import { authorize, openInstallation, stop, until, kill } from "../harness/process.ts";
import { expectDaysKept, idle } from "./expect-daily-limit-kept.ts";
import { fakeClock } from "./fake-clock.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { libfaketime } from "./required-tools.ts";

const LIMIT = 5;
const NIGHTS = 6;

/**
 * Time in ms until X shows a message that it accepted. A restarted service that looks earlier does not find the
 * message.
 */
const LATE_COMMIT_MS = 200;

const UNANSWERED = { network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 } as const;

test.skipIf(libfaketime === undefined)(
  `no day exceeds its limit after kill -9 in a run before midnight on ${NIGHTS} nights`,
  async () => {
    await using world = await openInstallation({
      x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: LATE_COMMIT_MS },
    });
    const clock = fakeClock(world);
    // X's clock moves together with the service's, because the service recognises its messages at X by the time at
    // which they were sent.
    const passTo = (ms: number): void => {
      world.sandbox.clock.advance(ms - clock.now());
      clock.set(ms);
    };
    world.env["DAILY_LIMIT"] = String(LIMIT);
    passTo(Date.parse("2027-05-03T12:00:00Z"));
    await addPeople(world, LIMIT * (NIGHTS + 2));
    let service = await world.serve();
    await authorize(service, world.sandbox);
    for (let night = 0; night < NIGHTS; night++) {
      const midnight = Date.parse("2027-05-04T00:00:00Z") + night * 24 * 3_600_000;
      // The service is stopped while the clock moves, because it would take so large a step for a wrong clock.
      await stop(service);
      passTo(midnight - 60_000);
      service = await world.serve();
      passTo(midnight - 2_000 + Math.random() * 1_500);
      const before = arrivals(world).people;
      // Every other night, X accepts a message but never answers, so that the kill leaves this message in doubt.
      if (night % 2 === 0) world.sandbox.faults.add(UNANSWERED);
      const started = await service.post("/social/run");
      if (started.status === 202) {
        await until(
          () => Promise.resolve(arrivals(world).people),
          (people) => people > before,
        );
      }
      await Bun.sleep(Math.random() * 20);
      await kill(service);
      world.sandbox.faults.clear();
      passTo(midnight + Math.random() * 1_000);
      service = await world.serve();
      await idle(service);
      const after = await service.post("/social/run", undefined, { prefer: "wait=300" });
      expect([200, 429]).toContain(after.status);
      await idle(service);
    }
    const perDay = await expectDaysKept(world, LIMIT);
    const sent = ((await (await service.get("/social/stats")).json()) as { sent: number }).sent;
    console.log(
      `killed before midnight ${NIGHTS} times: limit ${LIMIT}, sent ${JSON.stringify(perDay)}, ` +
        `at most ${arrivals(world).mostToOne} to one, counted ${sent}, arrived ${arrivals(world).people}`,
    );
    expect(sent).toBe(arrivals(world).people);
    expect(Object.keys(perDay).length).toBeGreaterThanOrEqual(NIGHTS);
  },
);
