import { expect, test } from "bun:test";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  stop,
  kill,
} from "../harness/process.ts";
import { PAST_LIFE_MS, slowTokens } from "../process/delay-x-token-answers.ts";

/** Applies a fault to the next request for a token at X. */
const TOKEN_REQUEST = { network: "x", path: "/oauth2/token", count: 1 } as const;

/** Starts a refresh whose answer never arrives, and kills the service during it. */
async function killInRefresh(world: Installation, service: Running, kind: "timeout_before" | "timeout_after_delivery") {
  const { sandbox } = world;
  sandbox.clock.advance(PAST_LIFE_MS);
  sandbox.faults.add({ ...TOKEN_REQUEST, kind });
  const { requests } = sandbox.tally.x;
  service.get("/social/me").catch(() => {});
  // Waits for two requests: one with the expired token, and the refresh whose answer is lost.
  await until(
    () => Promise.resolve(sandbox.tally.x.requests),
    (now) => now === requests + 2 && sandbox.faults.list().length === 0,
  );
  await kill(service);
}

const health = async (service: Running) => (await (await service.get("/social/health")).json()) as object;

test("after kill -9 before new tokens are stored, one retry and one notification follow", async () => {
  await using world = await openInstallation();
  const { x, slack } = world.sandbox;
  let service = await world.serve();
  await authorize(service, world.sandbox);
  await killInRefresh(world, service, "timeout_after_delivery");
  for (let start = 1; start <= 2; start++) {
    service = await world.serve();
    for (let time = 1; time <= 2; time++) expect((await service.get("/social/me")).status).toBe(401);
    expect(await health(service)).toMatchObject({ status: "degraded", authorized: false, running: false });
    expect((await service.post("/social/run")).status).toBe(401);
    // Waits until the log says that the chat accepted the message. Otherwise the service would send it a second time
    // after the kill.
    await until(
      () => exported(world),
      (events) => events.some(({ type }) => type === "DispatchSucceeded"),
    );
    await kill(service);
  }
  // The service used the refresh token twice: in the refresh whose answer was lost, and in one retry.
  expect([...x.refreshUses.values()]).toEqual([2]);
  service = await world.serve();
  expect(slack.messages.kept.map(({ text }) => text)).toEqual([
    expect.stringContaining("the X account is no longer authorized: open /social/auth again"),
  ]);
  await authorize(service, world.sandbox);
  expect((await service.get("/social/me")).status).toBe(200);
  expect(await health(service)).toMatchObject({ status: "ok", authorized: true });
  const events = (await exported(world)).filter(({ type }) => type === "TokenRefreshFailed");
  expect(events.map(({ data }) => [data["dead"], data["reason"]])).toEqual([
    [true, "invalid_request; the answer to an earlier refresh was lost before it could be stored"],
  ]);
});

test("after kill -9 in a refresh that never reached X, the next start refreshes", async () => {
  await using world = await openInstallation();
  let service = await world.serve();
  await authorize(service, world.sandbox);
  await killInRefresh(world, service, "timeout_before");
  service = await world.serve();
  expect((await service.get("/social/me")).status).toBe(200);
  expect([...world.sandbox.x.refreshUses.values()]).toEqual([1]);
  expect(await health(service)).toMatchObject({ status: "ok", authorized: true });
  const types = (await exported(world)).map(({ type }) => type);
  expect(types.slice(0, 2)).toEqual(["AccountAuthorized", "TokenRefreshed"]);
  expect(types).not.toContain("NotificationRequested");
});

test("after SIGTERM a refresh stores the new tokens, although its caller has left", async () => {
  await using world = await openInstallation();
  using _slow = slowTokens(world);
  const { x, clock } = world.sandbox;
  let service = await world.serve();
  await authorize(service, world.sandbox);
  clock.advance(PAST_LIFE_MS);
  const leaving = new AbortController();
  service.get("/social/me", { signal: leaving.signal }).catch(() => {});
  await until(
    () => Promise.resolve(x.refreshUses.size),
    (size) => size === 1,
  );
  leaving.abort();
  expect(await stop(service)).toBe(0);
  service = await world.serve();
  expect((await service.get("/social/me")).status).toBe(200);
  expect([...x.refreshUses.values()]).toEqual([1]);
});
