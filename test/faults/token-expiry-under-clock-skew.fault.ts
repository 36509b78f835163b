import { expect, test } from "bun:test";
import { authorize, exported, openInstallation, stop, type Running, type Installation } from "../harness/process.ts";
import { fakeClock } from "./fake-clock.ts";
import { libfaketime } from "./required-tools.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Time after which X's access tokens have expired: longer than the two hours that they live. */
const PAST_LIFE_MS = 2 * HOUR_MS + MINUTE_MS;
const EXPIRIES = 4;
const CALLERS = 8;

const SKEWS: readonly (readonly [what: string, ms: number])[] = [
  ["ten minutes behind", -10 * MINUTE_MS],
  ["three hours ahead", 3 * HOUR_MS],
  ["right", 0],
];

test.skipIf(libfaketime === undefined).each(SKEWS)(
  "each expiry causes one refresh with our clock %s since the authorization",
  async (what, skewMs) => {
    await using world = await openInstallation();
    const clock = fakeClock(world);
    clock.jump(skewMs);
    const service = await world.serve();
    await authorize(service, world.sandbox);
    for (let expiry = 1; expiry <= EXPIRIES; expiry++) {
      pass(PAST_LIFE_MS, world, clock);
      await askAllAtOnce(service);
      expect(refreshesOf(world)).toBe(expiry);
    }
    await expectGrantAlive(world, service, what, EXPIRIES);
  },
);

test.skipIf(libfaketime === undefined)(
  "a 401 for a token valid by our clock causes one refresh and a retry",
  async () => {
    await using world = await openInstallation();
    const clock = fakeClock(world);
    const service = await world.serve();
    await authorize(service, world.sandbox);
    for (let expiry = 1; expiry <= EXPIRIES; expiry++) {
      // Only X's clock moves.
      world.sandbox.clock.advance(PAST_LIFE_MS);
      clock.jump(-10 * MINUTE_MS);
      await askAllAtOnce(service);
      expect(refreshesOf(world)).toBe(expiry);
    }
    expect(world.sandbox.tally.x.answers[401]).toBeGreaterThanOrEqual(EXPIRIES);
    await expectGrantAlive(world, service, "behind, by surprise", EXPIRIES);
  },
);

test.skipIf(libfaketime === undefined)("a token expired only by our clock is refreshed once", async () => {
  await using world = await openInstallation();
  const clock = fakeClock(world);
  let service = await world.serve();
  await authorize(service, world.sandbox);
  /**
   * Restarts the service with a clock that has jumped. A running service ignores such a jump, but a start accepts it,
   * as after a boot.
   */
  const restartAfter = async (jumpMs: number): Promise<void> => {
    await stop(service);
    clock.jump(jumpMs);
    service = await world.serve();
  };
  await restartAfter(3 * HOUR_MS);
  for (let time = 0; time < EXPIRIES; time++) await askAllAtOnce(service);
  expect(refreshesOf(world)).toBe(1);
  // After the clock is set right, the service believes that the new token is valid for longer than it is. X will refuse
  // the token when it has expired.
  await restartAfter(-3 * HOUR_MS);
  for (let time = 0; time < EXPIRIES; time++) await askAllAtOnce(service);
  expect(refreshesOf(world)).toBe(1);
  pass(PAST_LIFE_MS, world, clock);
  await askAllAtOnce(service);
  expect(refreshesOf(world)).toBe(2);
  await expectGrantAlive(world, service, "ahead, and right again", 2);
});

/** Lets time pass for both the service and X. */
function pass(ms: number, { sandbox }: Installation, clock: { jump(ms: number): void }): void {
  sandbox.clock.advance(ms);
  clock.jump(ms);
}

async function askAllAtOnce(service: Running): Promise<void> {
  const answers = await Promise.all(Array.from({ length: CALLERS }, () => service.get("/social/me")));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
}

function refreshesOf({ sandbox }: Installation): number {
  return sandbox.x.grants.kept.filter(({ grant_type }) => grant_type === "refresh_token").length;
}

async function expectGrantAlive(world: Installation, service: Running, what: string, expiries: number): Promise<void> {
  const { refreshUses, revokedFamilies } = world.sandbox.x;
  const types = (await exported(world)).map(({ type }) => type);
  console.log(
    `clock ${what}: ${expiries} expiries, ${refreshesOf(world)} refreshes, a refresh token used at most ` +
      `${Math.max(...refreshUses.values())} times, lost grants ${revokedFamilies.size}`,
  );
  expect(Math.max(...refreshUses.values())).toBe(1);
  expect(revokedFamilies.size).toBe(0);
  expect(types.filter((type) => type === "TokenRefreshed")).toHaveLength(expiries);
  expect(types).not.toContain("TokenRefreshFailed");
  expect(await (await service.get("/social/health")).json()).toMatchObject({ status: "ok", authorized: true });
}
