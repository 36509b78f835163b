import { expect, test } from "bun:test";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  until,
  untilListening,
  type Running,
  type Installation,
} from "../harness/process.ts";
import { click, startLoad } from "./click-load.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { lossesOf } from "./expect-whole-log.ts";

const STARTS = 20;
const EXIT_OWNED = 75;

/** Time for which a service is stopped: longer than any of its time-outs for the log or a network. */
const STOPPED_MS = 10_000;

test(`only one of ${STARTS} services started at once on a new log serves`, async () => {
  await using world = await openInstallation();
  const starts = await Promise.all(Array.from({ length: STARTS }, () => attempt(world)));
  const winners = starts.flatMap(({ service }) => service ?? []);
  const losers = starts.filter(({ service }) => service === undefined);
  console.log(`${STARTS} starts at once: ${winners.length} serve, ${losers.length} refused`);
  expect(winners).toHaveLength(1);
  for (const { code, refusal } of losers) {
    expect([code, refusal]).toEqual([EXIT_OWNED, expect.stringContaining("another service owns this log")]);
  }
  // A start after the others have failed finds the owner's process id in its message.
  const late = await attempt(world);
  expect([late.code, late.refusal]).toEqual([EXIT_OWNED, expect.stringContaining(`pid ${winners[0]?.process.pid}`)]);
  expect((await winners[0]?.post("/api/tracking/event", click(0), BEARER))?.status).toBe(202);
});

test("a frozen service keeps its log and then continues without duplicates", async () => {
  const people = 30;
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  world.env["SEND_SPACING_SECONDS"] = "1";
  world.env["DAILY_LIMIT"] = String(people / 2);
  await addPeople(world, people);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  using load = startLoad({ connections: 4, service: () => Promise.resolve(service) });
  expect((await service.post("/social/run")).status).toBe(202);
  await until(
    () => Promise.resolve(arrivals(world).people),
    (reached) => reached >= 3,
  );
  service.process.kill("SIGSTOP");
  const stoppedAt = performance.now();
  let refusals = 0;
  while (performance.now() - stoppedAt < STOPPED_MS) {
    const second = await attempt(world);
    expect([second.code, second.refusal]).toEqual([EXIT_OWNED, expect.stringContaining(`pid ${service.process.pid}`)]);
    refusals++;
  }
  service.process.kill("SIGCONT");
  const before = load.acknowledged.size;
  await until(
    () => Promise.resolve(load.acknowledged.size),
    (size) => size > before + 10,
  );
  await load.stop();
  await ended(service);

  const { lost, doubled } = await lossesOf(world, load.acknowledged);
  const intents = (await exported(world)).filter(({ type }) => type === "DirectMessageAttempted");
  console.log(
    `stopped for ${STOPPED_MS / 1000} s: ${refusals} others refused, acknowledged ${load.acknowledged.size}, ` +
      `lost ${lost.length}, messages ${intents.length}, at most ${arrivals(world).mostToOne} to one person`,
  );
  expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
  expect([...load.answers.keys()]).toEqual([202]);
  expect(intents).toHaveLength(people / 2);
  expect(arrivals(world)).toEqual({ people: people / 2, mostToOne: 1 });
});

/**
 * Tries to start a service on a log that another service may own. Returns the service if it listens, otherwise its exit
 * code and its message.
 */
async function attempt(world: Installation): Promise<{ service?: Running; code?: number; refusal?: string }> {
  const child = world.start(["serve"]);
  try {
    return { service: await untilListening(child) };
  } catch (refusal) {
    return { code: await child.exited, refusal: (refusal as Error).message };
  }
}

async function ended(service: Running): Promise<void> {
  await until(
    async () => (await (await service.get("/social/health")).json()) as { running: boolean },
    ({ running }) => !running,
  );
}
