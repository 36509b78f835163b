import { expect, test } from "bun:test";
import { authorize, openInstallation, until, type Running } from "../harness/process.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

const LIMIT = 100;

/** Number of recipients: so many that no run ends because the list ends. */
const PEOPLE = LIMIT + 30;
const CALLERS = 8;

/**
 * Number of times that the service is killed and restarted while the message in the last place of the quota is in
 * doubt.
 */
const RESTARTS = 3;

test(`exactly one message uses the last place, with ${CALLERS} callers at once and kills`, async () => {
  // X shows a message late. If a restarted service looked too early, it would take the message for not delivered, and
  // give its place in the daily limit to a second message.
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 300 } });
  await addPeople(world, PEOPLE);
  let service = await world.serve({ DAILY_LIMIT: String(LIMIT - 1) });
  await authorize(service, world.sandbox);
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  expect(arrivals(world).people).toBe(LIMIT - 1);
  await killed(service);

  service = await world.serve({ DAILY_LIMIT: String(LIMIT) });
  world.sandbox.faults.add({ network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 });
  const told = [await statusesOf(service)];
  await until(
    () => Promise.resolve(arrivals(world).people),
    (people) => people === LIMIT,
  );
  for (let restart = 0; restart < RESTARTS; restart++) {
    await killed(service);
    service = await world.serve({ DAILY_LIMIT: String(LIMIT) });
    told.push(await statusesOf(service));
  }
  await idle(service);
  told.push(await statusesOf(service));

  const { places, open } = await attemptsOf(world);
  console.log(`the last place, ${CALLERS} callers at once: ${JSON.stringify(told)}; arrived ${arrivals(world).people}`);
  expect(told.flat().filter((status) => status === 202)).toHaveLength(1);
  expect(new Set(told.at(-1))).toEqual(new Set([429]));
  expect(arrivals(world)).toEqual({ people: LIMIT, mostToOne: 1 });
  expect(await (await service.get("/social/stats")).json()).toMatchObject({ sent: LIMIT });
  expect([Object.values(places), open]).toEqual([[LIMIT], 0]);
  await expectWhole(world);
});

async function statusesOf(service: Running): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: CALLERS }, () => service.post("/social/run")));
  return answers.map(({ status }) => status).sort((one, other) => one - other);
}

async function killed({ process }: Running): Promise<void> {
  process.kill("SIGKILL");
  await process.exited;
}
