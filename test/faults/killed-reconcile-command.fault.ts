import { expect, test } from "bun:test";
import type { FaultKind } from "../../sandbox/faults.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  kill,
} from "../harness/process.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

const KILLS = 8;

/**
 * Latest time in ms at which the service is killed, counted from its start. By then it has opened the log and looked
 * for the message at X twice, a second apart.
 */
const RECONCILE_MS_MAX = 2_500;

const STARTS_BESIDE = 4;

/** Maximum time in ms until the lease of a killed process has expired. */
const LEASE_MS_MAX = 60_000;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

test(`the next service settles a message in doubt once after outreach reconcile is killed ${KILLS} times`, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
  const pick = createPick(SEED);
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 300 } });
  let service = await serveAuthorized(world);
  for (let round = 0; round < KILLS; round++) {
    await addPeople(world, round + 1);
    await dieInDoubt(world, service, round % 2 === 0 ? "reset_after_delivery" : "reset_before");
    const reconciling = world.start(["outreach", "reconcile"]);
    await Bun.sleep(pick(RECONCILE_MS_MAX));
    await kill({ process: reconciling });
    service = await world.serve();
    await untilSettled(service, round + 1);
  }
  await expectSettledOnce(world, service, { sent: KILLS / 2, failed: KILLS / 2 }, "reconcile killed");
});

test("each message is settled once when a service starts during outreach reconcile", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  let service = await serveAuthorized(world);
  for (let start = 0; start < STARTS_BESIDE; start++) {
    // The message to the added recipient does not arrive at X. A process that looks for a missing message looks twice,
    // so the command and the restarted service both have time to look.
    await addPeople(world, start + 1);
    await dieInDoubt(world, service, "reset_before");
    const { tally } = world.sandbox;
    const { requests } = tally.x;
    const reconciled = world.execute("outreach", "reconcile");
    await until(
      () => Promise.resolve(tally.x.requests),
      (now) => now > requests,
    );
    service = await world.serve();
    expect(await reconciled).toMatchObject({ code: 0 });
    await untilSettled(service, start + 1);
  }
  await expectSettledOnce(world, service, { sent: 0, failed: STARTS_BESIDE }, "reconcile beside a start");
});

async function serveAuthorized(world: Installation): Promise<Running> {
  const service = await world.serve();
  await authorize(service, world.sandbox);
  return service;
}

/**
 * Leaves the message to the newest recipient in doubt: makes a run in which X does not answer and cannot be read, then
 * kills the service.
 */
async function dieInDoubt({ sandbox }: Installation, service: Running, kind: FaultKind): Promise<void> {
  const { faults } = sandbox;
  faults.add({ network: "x", kind, path: "/messages", count: 1 });
  const newest = [...sandbox.x.people.keys()].at(-1);
  faults.add({ network: "x", kind: "500", path: `/with/${newest}/dm_events` });
  // A command that was killed after it settled everything still holds the run's lease. So the request is repeated until
  // the lease has expired.
  const run = await until(
    async () => (await service.post("/social/run", undefined, { prefer: "wait=300" })).json(),
    (answer) => (answer as { readonly status?: number }).status !== 409,
    LEASE_MS_MAX,
  );
  expect(run).toMatchObject({ sent: 0, in_doubt: 1 });
  await kill(service);
  faults.clear();
}

/**
 * Waits until the service has settled `count` messages. It settles them in the background, because no run is in
 * progress.
 */
async function untilSettled(service: Running, count: number): Promise<void> {
  await until(
    async () => (await (await service.get("/social/stats")).json()) as { sent: number; failed: number },
    ({ sent, failed }) => sent + failed >= count,
  );
}

async function expectSettledOnce(
  world: Installation,
  service: Running,
  counts: { readonly sent: number; readonly failed: number },
  what: string,
): Promise<void> {
  const told = await toldOf(world);
  const most = Math.max(...told.values());
  const { people, mostToOne } = arrivals(world);
  console.log(`${what}: ${JSON.stringify(counts)}, told at most ${most} times; arrived ${people}, to one ${mostToOne}`);
  // The log has exactly one doubt and one outcome for each message.
  expect({ told: told.size, most }).toEqual({ told: 2 * (counts.sent + counts.failed), most: 1 });
  expect(people).toBe(counts.sent);
  expect(mostToOne).toBeLessThanOrEqual(1);
  expect(await (await service.get("/social/stats")).json()).toMatchObject(counts);
  await expectWhole(world);
}

/** Returns how often the log records a doubt and how often an outcome, for each attempt. */
async function toldOf(world: Installation): Promise<Map<string, number>> {
  const told = new Map<string, number>();
  for (const { type, data } of await exported(world)) {
    const isOutcome = type === "DirectMessageSent" || type === "DirectMessageFailed";
    if (!isOutcome && type !== "DirectMessageInDoubt") continue;
    const what = `${isOutcome ? "outcome" : "doubt"} ${String(data["attempt_id"])}`;
    told.set(what, (told.get(what) ?? 0) + 1);
  }
  return told;
}
