import { expect, test } from "bun:test";
import { createSafeFetch } from "../../src/networks/safe-fetch.ts";
import { createX } from "../../src/networks/x.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { openWorld, type World } from "./world.ts";

/** Who authorized at the sandbox; one of its cast. */
const OWN = { id: "1700000000000001000", username: "acme_team", name: "Acme Team" };

const MINUTE_MS = 60_000;
const TIMEOUT_MS = 60_000;

/** X's documented limits over real HTTP, on a clock that runs as fast as everybody's waits allow, and 120 people. */
async function openDay(limits: Partial<Sandbox["x"]["limits"]> = {}) {
  const stack = new AsyncDisposableStack();
  const world = stack.use(await openWorld());
  const sandbox = stack.use(await startSandbox({ clock: world.time.now, x: limits }));
  const { x } = sandbox;
  const scopes = ["dm.write", "dm.read", "tweet.read", "users.read"];
  x.access.set("token", {
    userId: OWN.id,
    scopes,
    family: "f",
    expiresAt: world.time.now() + 365 * 24 * 60 * MINUTE_MS,
  });
  const ids = Array.from({ length: 120 }, (_, number) => String(5_000_000_000 + number));
  for (const id of ids) x.people.set(id, { id, username: `p${id}`, name: `Person ${id}`, receives_your_dm: true });
  await world.append([
    { type: "AccountAuthorized", data: { user: OWN, scopes, expires_at: "2027-03-01T00:00:00.000Z" } },
  ]);
  await world.list(...ids);
  const safeFetch = createSafeFetch({ allowedOrigins: [sandbox.urls.xApi] });
  Object.assign(world.network, createX({ apiUrl: sandbox.urls.xApi, safeFetch, clock: world.time.now }));
  return { world, sandbox, [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose]() };
}

/** Chance as a run has it, and the same in each test. */
function chance(): () => number {
  let state = 42;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const start = (world: World) => world.start({ spacingMs: undefined, random: chance() });

async function minutesOf(world: World, work: () => Promise<unknown>): Promise<number> {
  const from = world.time.now();
  await work();
  return (world.time.now() - from) / MINUTE_MS;
}

test(
  "a network that takes 15 messages in 15 minutes gets a day's 100 in about 100 minutes, and never has to say 429",
  async () => {
    await using day = await openDay();
    const { world, sandbox } = day;
    const { run } = await start(world);
    const minutes = await minutesOf(world, async () => {
      expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 100, failed: 0, in_doubt: 0 });
    });
    expect(sandbox.tally.x.answers[429]).toBeUndefined();
    expect([sandbox.x.accepted.size, Math.max(...sandbox.x.accepted.values())]).toEqual([100, 1]);
    expect(minutes).toBeGreaterThan(75);
    expect(minutes).toBeLessThan(115);
  },
  TIMEOUT_MS,
);

test(
  "a 429 that comes all the same pauses the run, and each person gets one message after it",
  async () => {
    await using day = await openDay();
    const { world, sandbox } = day;
    sandbox.faults.add({ network: "x", kind: "429", count: 2, path: "/messages" });
    const { run } = await start(world);
    expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 100, failed: 0, in_doubt: 0 });
    expect(sandbox.tally.x.answers[429]).toBe(2);
    expect([sandbox.x.accepted.size, Math.max(...sandbox.x.accepted.values())]).toEqual([100, 1]);
    const pauses = await world.events("RunPaused");
    expect(pauses.filter(({ data }) => data.reason === "rate_limited")).toHaveLength(2);
  },
  TIMEOUT_MS,
);

test(
  "a network that tells no limits gets one message a minute or less",
  async () => {
    await using day = await openDay({ rateHeaders: false });
    const { world, sandbox } = day;
    const { run } = await start(world);
    const minutes = await minutesOf(world, async () => {
      expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 100 });
    });
    expect(sandbox.tally.x.answers[429]).toBeUndefined();
    expect(minutes).toBeGreaterThanOrEqual(99);
  },
  TIMEOUT_MS,
);
