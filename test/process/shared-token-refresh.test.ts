// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { revokeAll } from "../../sandbox/x/tokens.ts";
import { addPeople, arrivals } from "../faults/add-people-and-count-messages.ts";
import { PAST_LIFE_MS, holdTokens, type HeldTokens } from "./delay-x-token-answers.ts";
import {
  authorize,
  BEARER,
  ended,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  stop,
} from "../harness/process.ts";
import { isWhole } from "../harness/case-count.ts";

const many = <T>(count: number, one: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, one));

async function arrived(world: Installation, wanted: number): Promise<void> {
  await until(
    () => Promise.resolve(arrivals(world).people),
    (people) => people >= wanted,
  );
}

const DOCTORS = 2;

/** Runs a command that asks X with the service's tokens, in parallel with the service. */
async function doctor(world: Installation, { beside }: HeldTokens): Promise<string> {
  const { code, out } = await ended(world.start(["doctor", "--online"], { X_API_URL: beside }));
  return `${code} ${out.split("\n").find((line) => line.includes("outreach (x)"))}`;
}

/**
 * Makes the tokens invalid during a run, by calling `die`. The run, several callers and several commands then need new
 * tokens at the same time, and must share one refresh.
 */
async function meet(world: Installation, service: Running, held: HeldTokens, die: () => void) {
  // Waits until the commands ask X for the first time. On a busy machine they take longer to start than a caller waits
  // for a refresh.
  const gathered = held.gather(DOCTORS);
  const doctors = many(DOCTORS, () => doctor(world, held));
  await gathered;
  const refreshing = held.hold();
  die();
  const callers = many(15, () => service.get("/social/me"));
  await refreshing;
  const [told, reconciled, asked] = await Promise.all([
    doctors,
    many(2, () => world.command("outreach", "reconcile")),
    callers,
  ]);
  return { asked: asked.map(({ status }) => status), doctors: told, reconciled };
}

test("a run, callers and commands with expired tokens use each refresh token once", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  using held = holdTokens(world);
  const [rounds, people] = isWhole ? [4, 90] : [2, 60];
  await addPeople(world, people);
  const service = await world.serve({ SEND_SPACING_SECONDS: "1" });
  await authorize(service, world.sandbox);
  const started = (await (await service.post("/social/run")).json()) as { run_id: string };
  await arrived(world, 1);
  for (let round = 1; round <= rounds; round++) {
    const expire = (): void => world.sandbox.clock.advance(PAST_LIFE_MS);
    const { asked, doctors, reconciled } = await meet(world, service, held, expire);
    expect(asked).toEqual(asked.map(() => 200));
    expect(doctors).toEqual(doctors.map(() => "0 ok      outreach (x): the grant of @acme_team works"));
    for (const { code, err } of reconciled) {
      expect([code, err]).toEqual([75, expect.stringContaining(`run ${started.run_id} is in progress`)]);
    }
    expect([...world.sandbox.x.refreshUses.values()]).toEqual(Array(round).fill(1));
    // Waits for one more message, so that the run has used the new token before that one expires too.
    await arrived(world, arrivals(world).people + 1);
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
});

/**
 * Returns the operator's notifications so far. Sends one more and waits until it is delivered, because all earlier ones
 * are delivered before it.
 */
async function toldUntilNow({ sandbox }: Installation, service: Running): Promise<string[]> {
  const body = { message: "nothing is pending any more", service: "tests", level: "info" };
  expect((await service.post("/api/notify", body, BEARER)).status).toBe(200);
  const told = await until(
    () => Promise.resolve(sandbox.slack.messages.kept.map(({ text }) => text)),
    (texts) => texts.some((text) => text.includes(body.message)),
  );
  return told.filter((text) => !text.includes(body.message));
}

test("a dead grant that many detect at once causes one notification, also after a restart", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000 } });
  using held = holdTokens(world);
  await addPeople(world, 30);
  let service = await world.serve({ SEND_SPACING_SECONDS: "1" });
  await authorize(service, world.sandbox);
  const run = service.post("/social/run", undefined, { prefer: "wait=300" });
  await arrived(world, 1);
  const { asked, doctors } = await meet(world, service, held, () => revokeAll(world.sandbox.x));
  expect(asked).toEqual(asked.map(() => 401));
  for (const told of doctors) expect(told).toStartWith("1 WRONG   outreach (x): ");
  expect(await (await run).json()).toMatchObject({ reason: "not_authorized", in_doubt: 0 });
  const expectDead = async (): Promise<void> => {
    const health = await (await service.get("/social/health")).json();
    expect(health).toMatchObject({ status: "degraded", authorized: false, running: false });
    for (const _ of [1, 2]) {
      expect((await service.post("/social/run")).status).toBe(401);
      expect((await service.get("/social/me")).status).toBe(401);
    }
  };
  await expectDead();
  expect(await stop(service)).toBe(0);
  service = await world.serve();
  await expectDead();
  expect(await toldUntilNow(world, service)).toEqual([
    expect.stringContaining("the X account is no longer authorized: open /social/auth again"),
  ]);
  expect([...world.sandbox.x.refreshUses.values()]).toEqual([1]);
  const types = (await exported(world)).map(({ type }) => type);
  // The test itself sent the second notification.
  expect(types.filter((type) => type === "NotificationRequested")).toHaveLength(2);
  expect(types.filter((type) => type === "TokenRefreshFailed")).toHaveLength(1);
});
