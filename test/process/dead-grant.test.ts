// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { revokeAll } from "../../sandbox/x/tokens.ts";
import { addPeople } from "../faults/add-people-and-count-messages.ts";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type ListeningService,
  type Installation,
  stop,
} from "../harness/process.ts";
import { PAST_LIFE_MS } from "./delay-x-token-answers.ts";

const PEOPLE = 12;

/** Returns the operator's notifications on the chat channel. */
const told = ({ sandbox }: Installation): string[] => sandbox.slack.messages.kept.map(({ text }) => text);

/**
 * Starts a run, and revokes the app at X after the run's first `sent` messages. Then makes ten requests at the same
 * time that need a token.
 */
async function revokeInRun(world: Installation, service: ListeningService, sent: number): Promise<unknown> {
  const { x } = world.sandbox;
  const wanted = x.accepted.size + sent;
  const run = service.post("/social/run", undefined, { prefer: "wait=300" });
  await until(
    () => Promise.resolve(x.accepted.size),
    (size) => size >= wanted,
  );
  revokeAll(x);
  const asked = await Promise.all(Array.from({ length: 10 }, () => service.get("/social/me")));
  expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 401));
  return (await run).json();
}

test("each grant revoked during a run ends it, degrades health, and causes one notification", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  await addPeople(world, PEOPLE);
  // One second passes between two messages, so that the grant can be revoked in the middle of the run.
  const service = await world.host({ SEND_SPACING_SECONDS: "1" });
  for (const death of [1, 2]) {
    await authorize(service, world.sandbox);
    expect(await revokeInRun(world, service, 1)).toMatchObject({ reason: "not_authorized", in_doubt: 0 });
    expect(await (await service.get("/social/health")).json()).toMatchObject({ status: "degraded", authorized: false });
    expect((await service.post("/social/run")).status).toBe(401);
    await until(
      () => Promise.resolve(told(world).length),
      (count) => count >= death,
    );
  }
  expect(told(world)).toEqual(Array(2).fill(expect.stringContaining("the X account is no longer authorized")));
  const failures = (await exported(world)).filter(({ type }) => type === "TokenRefreshFailed");
  expect(failures.map(({ data }) => data["dead"])).toEqual([true, true]);
  // The remaining recipients are contacted under the next grant, each once.
  await authorize(service, world.sandbox);
  const rest = await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json();
  expect(rest).toMatchObject({ reason: "completed" });
  expect([world.sandbox.x.accepted.size, Math.max(...world.sandbox.x.accepted.values())]).toEqual([PEOPLE, 1]);
});

test("a wrong client secret keeps the grant, and the right one works without a notification", async () => {
  await using world = await openInstallation();
  const { clock, x } = world.sandbox;
  const first = await world.host();
  await authorize(first, world.sandbox);
  await stop(first);
  clock.advance(PAST_LIFE_MS);
  const wrong = await world.host({ X_CLIENT_SECRET: "mistyped" });
  expect((await wrong.get("/social/me")).status).toBe(502);
  expect(await (await wrong.get("/social/health")).json()).toMatchObject({ status: "ok", authorized: true });
  await stop(wrong);
  const right = await world.host();
  expect((await right.get("/social/me")).status).toBe(200);
  expect([...x.refreshUses.values()]).toEqual([1]);
  expect(told(world)).toEqual([]);
  const failures = (await exported(world)).filter(({ type }) => type === "TokenRefreshFailed");
  expect(failures.map(({ data }) => [data["dead"], data["reason"]])).toEqual([
    [false, "invalid_client: check X_CLIENT_ID and X_CLIENT_SECRET"],
  ]);
});

test("the service notifies once if a command detects the dead grant first", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  const { faults, x } = world.sandbox;
  await addPeople(world, 1);
  const service = await world.host();
  await authorize(service, world.sandbox);
  // Leaves a message in doubt: X accepts it without an answer, and the run cannot read the conversation.
  faults.add({ network: "x", kind: "reset_after_delivery", path: "/messages", count: 1 });
  faults.add({ network: "x", kind: "500", path: "/dm_conversations/with/" });
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  faults.clear();
  revokeAll(x);
  expect((await world.command("outreach", "reconcile")).out).toStartWith("1 in doubt: 0 found sent");
  await until(
    () => Promise.resolve(told(world).length),
    (count) => count > 0,
  );
  expect((await service.get("/social/me")).status).toBe(401);
  expect(await (await service.get("/social/health")).json()).toMatchObject({ authorized: false });
  const types = (await exported(world)).map(({ type }) => type);
  expect(types.filter((type) => type === "NotificationRequested" || type === "TokenRefreshFailed")).toHaveLength(2);
});
