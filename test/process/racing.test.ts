import { expect, test } from "bun:test";
import { revokeAll } from "../../src/sandbox/x/tokens.ts";
import { stop } from "../faults/ending.ts";
import { addPeople, arrivals } from "../faults/people.ts";
import { authorize, BEARER, exported, openWorld, until, type Running, type World } from "./service.ts";
import { slowTokens } from "./slow-tokens.ts";

/** X's access tokens live two hours; the service thinks so too, by a clock of its own that stays where it is. */
const PAST_LIFE_MS = 2 * 3_600_000 + 60_000;
const TIMEOUT_MS = 240_000;

const many = <T>(count: number, one: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, one));

async function arrived(world: World, wanted: number): Promise<void> {
  await until(
    () => Promise.resolve(arrivals(world).people),
    (people) => people >= wanted,
  );
}

/** The token expires under a run; the run, a crowd of callers and commands beside the service all meet with that at once. */
async function expireUnderRun(world: World, service: Running) {
  const { people } = arrivals(world);
  world.sandbox.clock.advance(PAST_LIFE_MS);
  const [asked, doctors, reconciled] = await Promise.all([
    many(15, () => service.get("/social/me")),
    many(2, () => world.command("doctor", "--online")),
    many(2, () => world.command("outreach", "reconcile")),
  ]);
  // Only now may the next one expire: the run has used the new one, or the one that a command got.
  await arrived(world, people + 1);
  return { asked: asked.map(({ status }) => status), doctors, reconciled };
}

test(
  "a run, callers and commands meet with expired tokens, round after round: each refresh token is used once, the run goes on",
  async () => {
    await using world = await openWorld({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    using _slow = slowTokens(world);
    const [rounds, people] = [5, 60];
    await addPeople(world, people);
    const service = await world.serve({ SEND_SPACING_SECONDS: "1" });
    await authorize(service, world.sandbox);
    const started = (await (await service.post("/social/run")).json()) as { run_id: string };
    await arrived(world, 1);
    for (let round = 1; round <= rounds; round++) {
      const { asked, doctors, reconciled } = await expireUnderRun(world, service);
      expect(asked).toEqual(asked.map(() => 200));
      for (const { code, out } of doctors) expect(`${code} ${out}`).toMatch(/^0 [^]*the grant of @acme_team works/);
      for (const { code, err } of reconciled) {
        expect(`${code} ${err}`).toStartWith(`75 run ${started.run_id} is in progress`);
      }
      expect([...world.sandbox.x.refreshUses.values()]).toEqual(Array(round).fill(1));
    }
    const health = (await (await service.get("/social/health")).json()) as object;
    expect(health).toMatchObject({ status: "ok", authorized: true, running: true, run: { id: started.run_id } });
    expect(world.sandbox.x.revokedFamilies.size).toBe(0);
    expect(arrivals(world).mostToOne).toBe(1);
    expect(await stop(service)).toBe(0);
    const types = (await exported(world)).map(({ type }) => type);
    const count = (wanted: string): number => types.filter((type) => type === wanted).length;
    expect([count("RunStarted"), count("TokenRefreshed"), count("TokenRefreshFailed")]).toEqual([1, rounds, 0]);
    expect(count("DirectMessageSent")).toBe(arrivals(world).people);
  },
  TIMEOUT_MS,
);

/** What the operator was told up to a notification of ours, which comes after everything that was owed before it. */
async function toldUntilNow({ sandbox }: World, service: Running): Promise<string[]> {
  const body = { message: "nothing is owed any more", service: "tests", level: "info" };
  expect((await service.post("/api/notify", body, BEARER)).status).toBe(200);
  const told = await until(
    () => Promise.resolve(sandbox.slack.messages.kept.map(({ text }) => text)),
    (texts) => texts.some((text) => text.includes(body.message)),
  );
  return told.filter((text) => !text.includes(body.message));
}

test(
  "a grant that died in a run is told once, also after more triggers and a restart",
  async () => {
    await using world = await openWorld({ x: { dmLimit: 1_000 } });
    await addPeople(world, 30);
    let service = await world.serve({ SEND_SPACING_SECONDS: "1" });
    await authorize(service, world.sandbox);
    const run = service.post("/social/run", undefined, { prefer: "wait=60" });
    await arrived(world, 1);
    revokeAll(world.sandbox.x);
    expect(await (await run).json()).toMatchObject({ reason: "not_authorized", in_doubt: 0 });
    const expectDead = async (): Promise<void> => {
      const health = await (await service.get("/social/health")).json();
      expect(health).toMatchObject({ status: "degraded", authorized: false, running: false });
      for (const _ of [1, 2]) expect((await service.post("/social/run")).status).toBe(401);
    };
    await expectDead();
    expect(await stop(service)).toBe(0);
    service = await world.serve();
    await expectDead();
    expect(await toldUntilNow(world, service)).toEqual([
      expect.stringContaining("the X account is no longer authorized: open /social/auth again"),
    ]);
    expect([...world.sandbox.x.refreshUses.values()]).toEqual([1]);
  },
  TIMEOUT_MS,
);
