import { expect, test } from "bun:test";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  stop,
} from "../harness/process.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

const PEOPLE = 6;

/** Fault of the sandbox: X accepts the message, and its answer never arrives. */
const UNANSWERED = { network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 } as const;

test("a service frozen in a run that a command then closes sends nothing more in it", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  await addPeople(world, PEOPLE);
  const service = await world.serve({ SEND_SPACING_SECONDS: "1" });
  await authorize(service, world.sandbox);

  // First, the service is stopped after X has accepted a message whose answer never arrives.
  world.sandbox.faults.add(UNANSWERED);
  const settled = await standStillInRun(world, service);
  expect(settled).toStartWith("1 in doubt: 1 found sent, 0 not delivered, 0 still in doubt\n");
  // Then the service is stopped between two messages.
  expect(await standStillInRun(world, service)).toMatch(/^[01] in doubt: /);

  const last = await service.post("/social/run", undefined, { prefer: "wait=300" });
  expect(await last.json()).toMatchObject({ reason: "completed" });
  const stats = (await (await service.get("/social/stats")).json()) as { sent: number };
  const { people, mostToOne } = arrivals(world);
  console.log(`stood still 2 times: arrived ${people}, at most ${mostToOne} to one, counted ${stats.sent}`);
  expect([people, mostToOne, stats.sent]).toEqual([PEOPLE, 1, PEOPLE]);
  expect(await stop(service)).toBe(0);
  await expectNothingOutsideOfRuns(world);
  await expectWhole(world);
});

/**
 * Starts a run, and stops the whole service after X has accepted the run's first message. Continues the service after a
 * command has closed the run. Returns the command's output.
 */
async function standStillInRun(world: Installation, service: Running): Promise<string> {
  const before = arrivals(world).people;
  expect((await service.post("/social/run")).status).toBe(202);
  await until(
    () => Promise.resolve(arrivals(world).people),
    (people) => people > before,
  );
  service.process.kill("SIGSTOP");
  // The lease of a stopped process expires like that of a dead one, so the command succeeds after a while.
  const { out } = await until(
    () => world.execute("outreach", "reconcile"),
    ({ code }) => code === 0,
  );
  service.process.kill("SIGCONT");
  await idle(service);
  expect(arrivals(world).people).toBe(before + 1);
  return out;
}

/** Expects that every intent lies between the start and the end of its run in the log. */
async function expectNothingOutsideOfRuns(world: Installation): Promise<void> {
  let running: unknown;
  for (const { type, data } of await exported(world)) {
    if (type === "RunStarted") running = data["run_id"];
    if (type === "DirectMessageAttempted") expect(data["run_id"]).toBe(running);
    if (type === "RunFinished" || type === "RunAbandoned") running = undefined;
  }
}
