import { expect, test } from "bun:test";
import type { FaultKind } from "../../sandbox/faults.ts";
import { authorize, openInstallation, until, type Running } from "../harness/process.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Faults of X when the service reads the conversation; `timeout_before` would only take longer. */
const UNREADABLE: readonly FaultKind[] = ["500", "502_html", "invalid_json", "cut_body", "reset_before", "redirect"];

/**
 * Daily limit. One message is in doubt and keeps its place in the quota, and after each restart one more message may be
 * sent.
 */
const LIMIT = UNREADABLE.length + 1;
const PEOPLE = LIMIT + 5;

test("a message stays in doubt through kills and runs while X's conversation is unreadable", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 200 } });
  await addPeople(world, PEOPLE);
  let service = await world.serve({ DAILY_LIMIT: "1" });
  await authorize(service, world.sandbox);
  const { faults, x } = world.sandbox;
  faults.add({ network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 });
  await service.post("/social/run");
  await until(
    () => Promise.resolve(x.accepted.size),
    (size) => size === 1,
  );
  const [doubted] = x.accepted.keys();
  for (const [index, kind] of UNREADABLE.entries()) {
    await killed(service);
    faults.clear();
    faults.add({ network: "x", kind, path: `/with/${doubted}/dm_events` });
    service = await world.serve({ DAILY_LIMIT: String(index + 2) });
    await untilDoubted(service);
    await idle(service);
    const run = (await (await service.post("/social/run", undefined, { prefer: "wait=300" })).json()) as object;
    expect(run).toMatchObject({ reason: "daily_limit_reached", sent: 1, failed: 0 });
    expect(await attemptsOf(world)).toMatchObject({ open: 1, foundSent: 0, notDelivered: [] });
  }
  const arrivedInDoubt = arrivals(world);
  faults.clear();
  const { out } = await world.execute("outreach", "reconcile");

  const attempts = await attemptsOf(world);
  console.log(
    `in doubt over ${UNREADABLE.length} restarts with unreadable conversations: arrived ${arrivedInDoubt.people}, ` +
      `at most ${arrivedInDoubt.mostToOne} to one, in the end ${out.trim()}`,
  );
  expect(out).toBe("1 in doubt: 1 found sent, 0 not delivered, 0 still in doubt\n");
  expect(arrivals(world)).toEqual({ people: LIMIT, mostToOne: 1 });
  expect([Object.values(attempts.places), attempts.open]).toEqual([[LIMIT], 0]);
  // The command recorded outcomes from another process. The service learns of them from the log.
  await until(
    async () => (await (await service.get("/social/stats")).json()) as { sent: number },
    ({ sent }) => sent === LIMIT,
  );
  await expectWhole(world);
});

/** Waits until the service logs why the message stays in doubt, which is all that an operator sees. */
async function untilDoubted(service: Running): Promise<void> {
  await until(
    () => Promise.resolve(service.log()),
    (log) => log.includes("a message stays in doubt"),
  );
}

async function killed({ process }: Running): Promise<void> {
  process.kill("SIGKILL");
  await process.exited;
}
