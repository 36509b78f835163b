// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { addPeople } from "../faults/add-people-and-count-messages.ts";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  stop,
} from "../harness/process.ts";
import { PAST_LIFE_MS, slowTokens } from "./delay-x-token-answers.ts";
import { isWhole } from "../harness/case-count.ts";

/** Interval in ms at which a process that waits for the tokens looks for them. */
const TURN_MS = 200;

/** Number of rounds of a race; in each round the tokens expire. */
const ROUNDS = isWhole ? 4 : 2;

/**
 * Returns the number of refreshes at X. Expects that each refresh token was used once, because otherwise X ends the
 * whole grant.
 */
function refreshes({ sandbox }: Installation): number {
  const uses = [...sandbox.x.refreshUses.values()];
  expect(uses).toEqual(uses.map(() => 1));
  expect(sandbox.x.revokedFamilies.size).toBe(0);
  return uses.length;
}

interface Told {
  readonly status: number;
  readonly run_id: string | undefined;
}

async function trigger(service: Running, headers: Record<string, string> = {}): Promise<Told> {
  const answer = await service.post("/social/run", undefined, headers);
  const { run_id, detail } = (await answer.json()) as { run_id?: string; detail?: string };
  return { status: answer.status, run_id: run_id ?? /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(detail ?? "")?.[0] };
}

const many = <T>(count: number, one: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, one));

test("50 triggers at once with an expired token start one run and refresh once", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  await addPeople(world, ROUNDS + 1);
  // With an hour between two messages, the run is still in progress when the last trigger is refused.
  const hourly = { SEND_SPACING_SECONDS: "3600" };
  let service = await world.serve(hourly);
  await authorize(service, world.sandbox);
  for (let round = 1; round <= ROUNDS; round++) {
    world.sandbox.clock.advance(PAST_LIFE_MS);
    const [told, asked] = await Promise.all([
      many(50, () => trigger(service)),
      many(10, () => service.get("/social/me")),
    ]);
    const started = told.filter(({ status }) => status === 202);
    expect(started).toHaveLength(1);
    const [run] = started;
    for (const other of told.filter((one) => one !== run)) expect(other).toEqual({ status: 409, run_id: run?.run_id });
    expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
    await until(
      () => Promise.resolve(world.sandbox.x.accepted.size),
      (size) => size === round,
    );
    expect(refreshes(world)).toBe(round);
    expect(await stop(service)).toBe(0);
    service = await world.serve(hourly);
  }
  const types = (await exported(world)).map(({ type }) => type);
  const count = (wanted: string): number => types.filter((type) => type === wanted).length;
  expect([count("RunStarted"), count("TokenRefreshed"), count("TokenRefreshFailed")]).toEqual([ROUNDS, ROUNDS, 0]);
});

test("concurrent triggers with one key start one run; those with another key get its id", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  await addPeople(world, 2);
  const service = await world.serve({ SEND_SPACING_SECONDS: "3600" });
  await authorize(service, world.sandbox);
  world.sandbox.clock.advance(PAST_LIFE_MS);
  const keyed = (key: string) => () => trigger(service, { "idempotency-key": key });
  const told = await Promise.all([many(10, keyed("one")), many(10, keyed("two"))]);
  const [winners, others] = told[0][0]?.status === 202 ? told : [told[1], told[0]];
  const run_id = winners[0]?.run_id;
  expect(run_id).toBeString();
  expect(winners).toEqual(winners.map(() => ({ status: 202, run_id })));
  expect(others).toEqual(others.map(() => ({ status: 409, run_id })));
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size === 1,
  );
  expect(refreshes(world)).toBe(1);
  expect((await exported(world)).filter(({ type }) => type === "RunStarted")).toHaveLength(1);
});

/**
 * Until `work` is done, lets the token expire again and again and makes the service use it. Returns the result of
 * `work` and the statuses of the service's answers.
 */
async function askingBeside<T>(
  world: Installation,
  service: Running,
  work: Promise<T>,
): Promise<{ result: T; told: Set<number> }> {
  const told = new Set<number>();
  const done = new AbortController();
  const result = work.finally(() => done.abort());
  do {
    world.sandbox.clock.advance(PAST_LIFE_MS);
    const answers = await many(10, () => service.get("/social/me"));
    for (const { status } of answers) told.add(status);
    // Pauses before the next simulated expiry for as long as a process that waits for the tokens needs to look for
    // them. Real tokens live longer than that.
    await Promise.race([result, Bun.sleep(TURN_MS)]);
  } while (!done.signal.aborted);
  return { result: await result, told };
}

test("the service and commands with expired tokens use each refresh token once", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  using _slow = slowTokens(world);
  const { faults } = world.sandbox;
  let service: Running | undefined;
  for (let round = 1; round < ROUNDS; round++) {
    await addPeople(world, round);
    service ??= await world.serve();
    if (round === 1) await authorize(service, world.sandbox);
    // The message stays in doubt: it arrives, but X's answer is lost, and X refuses to show the conversation to the
    // run.
    const [person] = [...world.sandbox.x.people.values()].filter(({ username }) => username === `person_${round}`);
    faults.add({ network: "x", kind: "reset_after_delivery", path: "/messages", count: 1 });
    faults.add({ network: "x", kind: "500", path: `/${person?.id}/dm_events` });
    const run = await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json();
    expect(run).toMatchObject({ sent: 0, in_doubt: 1 });
    faults.clear();
    const commands = Promise.all([
      many(3, () => world.command("outreach", "reconcile")),
      world.command("doctor", "--online"),
    ]);
    const { result, told } = await askingBeside(world, service, commands);
    const [reconciled, doctor] = result;
    expect([...told]).toEqual([200]);
    // `doctor` exits with 1 if the new token has expired before it is used, which happens on a busy machine. `outreach
    // reconcile` exits with 75 if another process is settling messages.
    expect(`${doctor.code} ${doctor.out}`).toMatch(
      /^(0 |1 [^]*\nWRONG   outreach \(x\): X no longer accepts the token\n$)/,
    );
    expect(await world.command("doctor", "--online")).toMatchObject({ code: 0 });
    for (const { code, out } of reconciled) expect(`${code} ${out}`).toMatch(/^(0 |75 |1 1 in doubt: )/);
    expect((await world.command("outreach", "reconcile")).code).toBe(0);
    const { url } = service;
    await until(
      async () => (await (await fetch(`${url}/social/stats`)).json()) as { sent: number },
      ({ sent }) => sent === round,
    );
  }
  const types = (await exported(world)).map(({ type }) => type);
  expect(types.filter((type) => type === "TokenRefreshed")).toHaveLength(refreshes(world));
  expect(types).not.toContain("TokenRefreshFailed");
});

test("unlinking while the service refreshes revokes the grant for good", async () => {
  await using world = await openInstallation();
  using _slow = slowTokens(world);
  const service = await world.serve();
  for (let round = 1; round <= ROUNDS; round++) {
    await authorize(service, world.sandbox);
    const { result, told } = await askingBeside(world, service, world.command("account", "unlink"));
    expect(result).toMatchObject({ code: 0, out: "unlinked, and the grant is revoked\n" });
    expect([...told.difference(new Set([200, 401]))]).toEqual([]);
    await until(
      async () => (await (await service.get("/social/health")).json()) as { authorized: boolean },
      ({ authorized }) => !authorized,
    );
  }
  const types = (await exported(world)).map(({ type }) => type).filter((type) => /^(Account|Token)/.test(type));
  expect(types.at(-1)).toBe("AccountUnlinked");
  expect(types).not.toContain("TokenRefreshFailed");
  const uses = [...world.sandbox.x.refreshUses.values()];
  expect(uses).toEqual(uses.map(() => 1));
  expect(world.sandbox.x.revokedFamilies.size).toBe(ROUNDS);
});
