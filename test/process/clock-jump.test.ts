// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openPostgresStore } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { CLICK } from "../harness/sample-click.ts";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  stop,
  until,
  untilListening,
  type Installation,
} from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const PROGRAM = join(import.meta.dirname, "programs/moved-clock.ts");
const DAY_MS = 24 * 3_600_000;
const LIMIT = 2;
/** Starts the service on a machine whose wall clock is `movedMs` ahead. */
async function serveAhead(world: Installation, movedMs: number) {
  const child = Bun.spawn(onRuntime([], { module: PROGRAM }), {
    cwd: world.directory,
    env: { ...world.env, MOVED_MS: String(movedMs), JUMP_MS: String(400 * DAY_MS) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const service = await untilListening(child);
  return {
    ...service,
    /** Returns the number of messages that a run sends, or the problem type if none starts. */
    async run(): Promise<unknown> {
      const answer = await service.post("/social/run", undefined, { prefer: "wait=300" });
      const { sent, type } = (await answer.json()) as { sent?: number; type?: string };
      return sent ?? type;
    },
    [Symbol.asyncDispose]: async () => void (await stop(service)),
  };
}

async function openWorld(): Promise<Installation> {
  const world = await openInstallation({ x: { dmLimit: 1_000 } });
  world.env["DAILY_LIMIT"] = String(LIMIT);
  const rows = ["username,basis"];
  for (let number = 1; number <= 12; number++) {
    const username = `person_${number}`;
    const id = String(5_000_000_000 + number);
    world.sandbox.x.people.set(id, { id, username, name: username, receives_your_dm: true });
    rows.push(`${username},opt_in`);
  }
  world.file("people.csv", rows.join("\n"));
  return world;
}

const [SKEWED, USED_UP] = ["urn:reachlog:problem:clock-skewed", "urn:reachlog:problem:daily-limit-reached"];

test("no second quota is sent after a clock jump; clock-corrected repairs a log with future events", async () => {
  await using world = await openWorld();
  await world.command("recipients", "import", join(world.directory, "people.csv"));
  {
    await using service = await serveAhead(world, 0);
    await authorize(service, world.sandbox);
    expect(await service.run()).toBe(LIMIT);
    service.process.kill("SIGUSR2");
    await until(
      async () => service.log(),
      (log) => log.includes("this machine's clock jumped: no run starts"),
    );
    expect(await service.run()).toBe(SKEWED);
    expect((await service.post("/api/tracking/event", CLICK)).status).toBe(202);
  }
  const days = new Set((await exported(world)).map((event) => (event as unknown as { time: string }).time.slice(0, 4)));
  expect(days.size).toBe(1);

  // A start after a boot trusts the clock, even if it is 400 days ahead. The events recorded then keep the log's time
  // from moving back later.
  bootMachine(world);
  await using(await serveAhead(world, 400 * DAY_MS), async (service) => expect(await service.run()).toBe(LIMIT));
  bootMachine(world);
  await using(await serveAhead(world, 0), async (service) => {
    expect(await service.run()).toBe(SKEWED);
    const { code, out } = await world.command("doctor");
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(
        /^WRONG {3}clock: the newest event was recorded at .* say so with reachlog clock-corrected/m,
      ),
    ]);
    expect(await world.command("clock-corrected")).toMatchObject({ code: 0, err: "" });
    expect((await world.command("doctor")).out).not.toContain("clock-corrected");
    expect((await world.command("clock-corrected")).code).toBe(1);
    // The messages sent before the clock was moved and those sent while it was 400 days ahead both count toward today's
    // quota, so it is used up.
    expect(await untilCorrected(service)).toBe(USED_UP);
    const used = await service.post("/social/run");
    expect(((await used.json()) as { type: string }).type).toBe(USED_UP);
    expect(Number(used.headers.get("retry-after"))).toBeLessThanOrEqual(DAY_MS / 1_000);
  });
  for (const day of [1, 2]) {
    bootMachine(world);
    await using(await serveAhead(world, day * DAY_MS), async (service) => {
      expect([await service.run(), await service.run()]).toEqual([LIMIT, USED_UP]);
    });
  }
  expect(world.sandbox.x.accepted.size).toBe(4 * LIMIT);
});

const recordOf = ({ directory }: Installation): string => join(directory, "reachlog.clock");

/** Simulates a boot of the machine: removes the record from which the service knows which time to expect. */
const bootMachine = (world: Installation): void => rmSync(recordOf(world), { force: true });

test("a clock moved while the service was stopped blocks runs until clock-corrected", async () => {
  await using world = await openWorld();
  await using(await serveAhead(world, -2 * DAY_MS), async (service) => {
    const recipients = Array.from(world.sandbox.x.people.values(), ({ username }) => ({ username, basis: "opt_in" }));
    expect((await service.post("/social/recipients", recipients, BEARER)).status).toBe(200);
    await authorize(service, world.sandbox);
    expect(await service.run()).toBe(LIMIT);
    await until(async () => existsSync(recordOf(world)), Boolean);
  });
  await using(await serveAhead(world, 0), async (service) => {
    expect(service.log()).toContain("this machine's clock jumped: no run starts");
    expect(await service.run()).toBe(SKEWED);
    expect((await service.post("/api/tracking/event", CLICK)).status).toBe(202);
  });
  const times = (await exported(world)).map((event) => Date.parse((event as unknown as { time: string }).time));
  expect(Math.max(...times)).toBeLessThan(Date.now() - DAY_MS);
  await using(await serveAhead(world, -2 * DAY_MS), async (service) => expect(await service.run()).toBe(USED_UP));

  await using(await serveAhead(world, 0), async (service) => {
    const { code, out } = await world.command("doctor");
    expect([code, out]).toEqual([1, expect.stringContaining("say so with reachlog clock-corrected")]);
    expect(await world.command("clock-corrected")).toMatchObject({ code: 0, err: "" });
    expect((await world.command("clock-corrected")).code).toBe(1);
    expect(await untilCorrected(service)).toBe(LIMIT);
  });
});

/**
 * Requests runs until the service has read the event of `clock-corrected`. Until then the service refuses each run
 * because of the skewed clock. Returns the first answer that is not this refusal.
 */
function untilCorrected(service: Awaited<ReturnType<typeof serveAhead>>): Promise<unknown> {
  return until(
    () => service.run(),
    (answer) => answer !== SKEWED,
  );
}

/** Calls `use` with a service, then stops the service. */
async function using<Part extends AsyncDisposable>(part: Part, use: (part: Part) => Promise<unknown>): Promise<void> {
  await using open = part;
  await use(open);
}

test("clock-corrected repairs a log on PostgreSQL with an event ahead of the server's clock", async () => {
  await using world = await openWorld();
  const url = await newDatabase();
  Object.assign(world.env, { DATABASE_URL: url, REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") });
  await world.command("recipients", "import", join(world.directory, "people.csv"));
  const clock = (): number => Date.now() + 400 * DAY_MS;
  await using store = await openPostgresStore<Event>({ url, codec, clock });
  await store.append("requests", [makeEvent("CircuitClosed", makeId(), { channel: "chat" }, { caller: "test" })]);
  await using service = await serveAhead(world, 0);
  await authorize(service, world.sandbox);
  expect(await service.run()).toBe(SKEWED);
  expect((await world.command("doctor")).out).toContain("say so with reachlog clock-corrected");
  expect(await world.command("clock-corrected")).toMatchObject({ code: 0 });
  expect(await untilCorrected(service)).toBe(LIMIT);
  expect(await service.run()).toBe(USED_UP);
});
