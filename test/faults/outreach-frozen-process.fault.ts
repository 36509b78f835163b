import { expect, test } from "bun:test";
import type { Fault } from "../../sandbox/faults.ts";
import { authorize, exported, openInstallation, until, type Running, type Installation } from "../harness/process.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

const PEOPLE = 12;

/** Number of the message at which the process is stopped, neither the first nor the last of a batch. */
const STOPPED_AT = 5;

/**
 * Maximum time in ms until another process has taken over: a lease lasts 30 s, and its new holder needs some seconds to
 * settle.
 */
const TAKEN_OVER_MS_MAX = 90_000;

/** Exit code of a command that finds a run in progress. */
const EXIT_RUNNING = 75;

interface Moment {
  readonly what: string;
  /**
   * Fault with which X answers the request for message {@link STOPPED_AT}, after which the process is stopped. If
   * undefined, X accepts the message, and the process is stopped before the next one.
   */
  readonly fault: Pick<Fault, "kind" | "retryAfter"> | undefined;
  /** Outcome that the log finally has for the message at which the process was stopped. */
  readonly fate: "found sent" | "not delivered" | "sent by another run";
}

const MOMENTS: readonly Moment[] = [
  { what: "X has the message, and has not answered", fault: { kind: "timeout_after_delivery" }, fate: "found sent" },
  { what: "X never gets the message", fault: { kind: "timeout_before" }, fate: "not delivered" },
  { what: "the message waits for X's window", fault: { kind: "429", retryAfter: 5 }, fate: "not delivered" },
  { what: "between two messages", fault: undefined, fate: "sent by another run" },
];

test("a service frozen in a run longer than its lease sends nothing twice afterwards", async () => {
  // All cases run at the same time, because each waits long for a lease. `allSettled` waits for all, so that no process
  // is left running after a failure.
  const ends = await Promise.allSettled(MOMENTS.map((moment) => standStill(moment)));
  for (const end of ends) {
    if (end.status === "rejected") throw end.reason;
    console.log(end.value);
  }
});

async function standStill({ what, fault, fate }: Moment): Promise<string> {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 200 } });
  world.env["SEND_SPACING_SECONDS"] = "1";
  await addPeople(world, PEOPLE);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  await stopAt(world, service, fault);
  const before = arrivals(world).people;
  expect(await world.execute("outreach", "reconcile")).toMatchObject({ code: EXIT_RUNNING });
  const settled = await until(
    () => world.execute("outreach", "reconcile"),
    ({ code }) => code !== EXIT_RUNNING,
    TAKEN_OVER_MS_MAX,
  );
  expect(settled).toMatchObject({ code: 0, out: expect.stringContaining("was closed after its process died") });
  service.process.kill("SIGCONT");
  await until(
    () => Promise.resolve(service.log()),
    (log) => log.includes("a run failed"),
  );
  await idle(service);
  // The stopped run has lost its lease, so it contacts no further recipient.
  expect(arrivals(world).people).toBe(before);
  expect((await service.post("/social/run", undefined, { prefer: "wait=300" })).status).toBe(200);
  await idle(service);

  const attempts = await attemptsOf(world);
  const { people, mostToOne } = arrivals(world);
  const reached = fate === "not delivered" ? PEOPLE - 1 : PEOPLE;
  expect({ people, mostToOne }).toEqual({ people: reached, mostToOne: 1 });
  expect(await (await service.get("/social/stats")).json()).toMatchObject({ sent: reached, failed: PEOPLE - reached });
  expect(attempts).toMatchObject({ open: 0, foundSent: fate === "found sent" ? 1 : 0, abandonedRuns: 1 });
  expect(attempts.notDelivered).toHaveLength(PEOPLE - reached);
  await expectRunsApart(world);
  await expectWhole(world);
  return `stopped for longer than the lease, ${what}: ${fate}; arrived ${people} of ${PEOPLE}, at most ${mostToOne} to one`;
}

interface Health {
  readonly run: { readonly sent: number; readonly waiting: { readonly reason: string } | null } | null;
}

/**
 * Starts a run, and stops the process with SIGSTOP at the message `STOPPED_AT`, once X has reacted to it with `fault`.
 */
async function stopAt({ sandbox }: Installation, service: Running, fault: Moment["fault"]): Promise<void> {
  const { x, faults } = sandbox;
  // Finds the recipient with this place in the list that `addPeople` created.
  const person = [...x.people.values()].find(({ username }) => username === `person_${STOPPED_AT}`);
  if (fault !== undefined) faults.add({ network: "x", path: `/with/${person?.id}/messages`, count: 1, ...fault });
  expect((await service.post("/social/run")).status).toBe(202);
  await until(
    async () => {
      const { run } = (await (await service.get("/social/health")).json()) as Health;
      // Without a fault, waits until the log has recorded the message. A process that is stopped in the middle of a
      // write would lock the log for all others.
      if (fault === undefined) return run?.sent === STOPPED_AT;
      return fault.kind === "429" ? run?.waiting?.reason === "rate_limited" : faults.list().length === 0;
    },
    (isThere) => isThere,
  );
  service.process.kill("SIGSTOP");
}

/** Expects that no run records another intent after it was closed. */
async function expectRunsApart(world: Installation): Promise<void> {
  const closed = new Set<unknown>();
  for (const { type, data } of await exported(world)) {
    if (type === "RunAbandoned" || type === "RunFinished") closed.add(data["run_id"]);
    else if (type === "DirectMessageAttempted") expect(closed.has(data["run_id"])).toBe(false);
  }
}
