import { join } from "node:path";
import { expect, test } from "bun:test";
import { startPostgres } from "eventstore-lite/testing";
import {
  authorize,
  ended,
  exported,
  openInstallation,
  stop,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { expectDaysKept, idle } from "./expect-daily-limit-kept.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { libfaketime } from "./required-tools.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LIMIT = 5;
const PEOPLE = 40;

/**
 * Returns a time zone in which midnight is less than two hours away, but still at least ten minutes, so that it does
 * not fall within the test.
 */
function zoneBeforeMidnight(now: Date): string {
  const wanted = now.getUTCMinutes() < 50 ? 23 : 22;
  // Etc/GMT+5 is five hours behind UTC. These zones go from GMT+12 (behind UTC) to GMT-14 (ahead of it).
  const behind = (now.getUTCHours() - wanted + 24) % 24;
  return behind <= 12 ? `Etc/GMT+${behind}` : `Etc/GMT-${24 - behind}`;
}

interface TwoClocks extends AsyncDisposable {
  readonly world: Installation;
  readonly right: Running;
  readonly wrong: Running;
  readonly clock: FakeClock;
}

/** Opens two instances of one log on a server. The second one's clock is wrong by `aheadMs`. */
async function openTwoClocks(aheadMs: number, settings: Record<string, string> = {}): Promise<TwoClocks> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres());
  const world = stack.use(await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } }));
  Object.assign(world.env, {
    DATABASE_URL: await server.newDatabase(),
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
    DAILY_LIMIT: String(LIMIT),
    QUOTA_TIMEZONE: zoneBeforeMidnight(new Date()),
    ...settings,
  });
  const clock = createFakeClock(join(world.directory, "faketime"));
  clock.jump(aheadMs);
  const right = await world.serve();
  await addPeople(world, PEOPLE);
  await authorize(right, world.sandbox);
  const wrong = await world.serve(clock.env);
  const opened = stack.move();
  return { world, right, wrong, clock, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/**
 * Requests a run, and returns the status and the problem type of the answer. If a run starts, waits until it has ended.
 */
async function run(service: Running): Promise<{ status: number; type: string | undefined }> {
  const answer = await service.post("/social/run", undefined, { prefer: "wait=300" });
  const { type } = (await answer.json()) as { type?: string };
  await idle(service);
  return { status: answer.status, type };
}

const SKEWED = { status: 503, type: "urn:reachlog:problem:clock-skewed" };

test.skipIf(libfaketime === undefined).each([
  ["the right one runs first", true],
  ["the wrong one is triggered first", false],
])("two instances, one two hours ahead, send one day's messages when %s", async (_name, rightFirst) => {
  await using two = await openTwoClocks(2 * HOUR_MS);
  const { world, right, wrong } = two;
  if (!rightFirst) expect(await run(wrong)).toEqual(SKEWED);
  expect(await run(right)).toMatchObject({ status: 200 });
  const refused = await run(wrong);
  console.log(`two instances, one 2 h ahead: ${arrivals(world).people} of ${LIMIT} sent`);
  expect(refused).toEqual(SKEWED);
  expect(arrivals(world)).toEqual({ people: LIMIT, mostToOne: 1 });
  await expectDaysKept(world, LIMIT);
});

test.skipIf(libfaketime === undefined)(
  "two instances send one day's messages while the clock of one is moved",
  async () => {
    await using two = await openTwoClocks(0);
    const { world, right, wrong, clock } = two;
    const jumps = [2 * HOUR_MS, -HOUR_MS, 26 * HOUR_MS, 0, 4 * MINUTE_MS, -4 * MINUTE_MS];
    for (const jump of jumps) {
      clock.set(Date.now() + jump);
      const isSkewed = Math.abs(jump) > 5 * MINUTE_MS;
      const [one, other] = await Promise.all([run(right), run(wrong)]);
      if (isSkewed) expect(other).toEqual(SKEWED);
      else expect(other.type).not.toBe(SKEWED.type);
      expect([200, 202, 409, 429]).toContain(one.status);
    }
    clock.set(Date.now());
    await until(
      async () => (await run(wrong)).status,
      (status) => status === 429,
    );
    console.log(`clock of one instance moved ${jumps.length} times: ${arrivals(world).people} of ${LIMIT} sent`);
    expect(arrivals(world)).toEqual({ people: LIMIT, mostToOne: 1 });
    await expectDaysKept(world, LIMIT);
  },
);

test.skipIf(libfaketime === undefined)(
  "an instance three days ahead expires no data, and doctor says why no run starts",
  async () => {
    await using two = await openTwoClocks(3 * 24 * HOUR_MS, { RETENTION_DAYS: "1" });
    const { world, right, wrong, clock } = two;
    expect((await right.post("/api/notify", { message: "of today" })).status).toBe(200);
    // Once the instance with the right clock has stopped, the one with the wrong clock takes over the retention.
    expect(await stop(right)).toBe(0);
    await until(
      async () => ((await (await wrong.get("/api/health")).json()) as { roles: Record<string, string> }).roles,
      ({ retention }) => retention !== undefined,
    );
    const checked = await ended(world.start(["doctor"], clock.env));
    expect(await ended(world.start(["doctor"]))).toMatchObject({ code: 0, out: expect.stringMatching(/ok\s+clock:/) });
    expect(checked.code).toBe(1);
    expect(checked.out).toContain("clock: this machine's clock is 3 d ahead of the log's: no run starts");
    expect(await stop(wrong)).toBe(0);
    const types = (await exported(world)).map(({ type }) => type);
    console.log(
      `an instance 3 days ahead, RETENTION_DAYS=1: ${types.filter((type) => type === "PersonalDataExpired").length} days expired`,
    );
    expect(types).not.toContain("PersonalDataExpired");
  },
);
