import { expect, test } from "bun:test";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { authorize, openInstallation, until, type Running, type Installation, stop, kill } from "../harness/process.ts";
import { attemptsOf } from "./recorded-message-attempts.ts";
import { expectDaysKept, idle } from "./expect-daily-limit-kept.ts";
import { arrivals } from "./add-people-and-count-messages.ts";
import { isWhole } from "../harness/case-count.ts";
import { expectWhole } from "./expect-whole-log.ts";

/**
 * Number of rounds. Each has two kills: the first comes after X has accepted a message and before the log records that.
 */
const ROUNDS = isWhole ? 25 : 10;
const KILLS = 2 * ROUNDS;
const LIMIT = 100;
const PEOPLE = 130;

/**
 * Time in ms until X's conversation shows a sent message. If the service looked only once, at its start, it would miss
 * the message; it looks again after a second.
 */
const LATE_COMMIT_MS = 300;

/** Maximum time in ms from the start of a run to a kill: within its first messages. */
const RUN_MS_MAX = 60;

/**
 * Latest time in ms at which a starting service is killed. Until then it opens the log and settles what the previous
 * kill left.
 */
const START_MS_MAX = 1_500;

/** The service is killed at the message to one of this many next recipients, chosen at random. */
const AHEAD_MAX = 3;

/** Moments of a round's second kill: while a message is on its way to X (`unsent`), in a run, or in a start. */
const SECOND_KILLS = ["unsent", "run", "run", "start"] as const;

/** Seed of the random choices. The same seed makes the same choices; the processes still behave differently. */
const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

test(`at most ${LIMIT} of ${PEOPLE} recipients get a message, each once, after ${KILLS} times kill -9`, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
  const pick = createPick(SEED);
  await using world = await openInstallation({
    x: { dmLimit: 1_000, dmReadLimit: 10_000, lateCommitMs: LATE_COMMIT_MS },
  });
  const { wanted, unwanted } = await addMixedPeople(world);
  let service = await world.serve();
  await authorize(service, world.sandbox);
  const kills = { accepted: 0, unsent: 0, run: 0, start: 0, idle: 0 };
  const chosen = async (): Promise<string | undefined> => {
    const { intended } = await attemptsOf(world);
    return wanted.filter((id) => !intended.includes(id))[pick(AHEAD_MAX)];
  };
  for (let round = 0; round < ROUNDS; round++) {
    kills[await killAtRequest(world, service, await chosen(), "accepted")]++;
    const second = SECOND_KILLS[pick(SECOND_KILLS.length)] ?? "run";
    if (second === "start") await killInStart(world, pick(START_MS_MAX));
    service = await settled(world);
    if (second === "start") kills.start++;
    else {
      const person = await chosen();
      const isRun = second === "run";
      kills[
        await (isRun
          ? killInRun(world, service, person, pick(RUN_MS_MAX))
          : killAtRequest(world, service, person, second))
      ]++;
      service = await settled(world);
    }
  }
  await finish(service);

  const { people, mostToOne } = arrivals(world);
  const stats = (await (await service.get("/social/stats")).json()) as { sent: number };
  expect(await stop(service)).toBe(0);
  // The number of intents is limited only by the number of recipients here, because X refused some messages, which give
  // their place in the quota back. The quota is checked below.
  await expectDaysKept(world, PEOPLE);
  const attempts = await attemptsOf(world);
  console.log(
    `kills ${KILLS} ${JSON.stringify(kills)}: arrived ${people}, at most ${mostToOne} to one, counted sent ${stats.sent}; ` +
      `in doubt found sent ${attempts.foundSent}, not delivered ${attempts.notDelivered.length}, left open ${attempts.open}; ` +
      `places ${JSON.stringify(attempts.places)}`,
  );
  const places = Object.values(attempts.places);
  expect(Math.max(...places)).toBeLessThanOrEqual(LIMIT);
  // Midnight may pass during the test, so there may be more than one day.
  expect(people).toBeLessThanOrEqual(LIMIT * places.length);
  expect(mostToOne).toBe(1);
  expect(stats.sent).toBe(people);
  expect(attempts.open).toBe(0);
  const { accepted } = world.sandbox.x;
  expect([...unwanted, ...attempts.notDelivered].filter((id) => accepted.has(id))).toEqual([]);
  expect(new Set(attempts.intended).size).toBe(attempts.intended.length);
  // In rare cases the day's quota is used up before the last rounds, so some kills may not happen.
  expect(kills.accepted).toBeGreaterThan(0.8 * ROUNDS);
  expect(attempts.foundSent).toBeGreaterThanOrEqual(kills.accepted);
  expect(attempts.abandonedRuns).toBeGreaterThanOrEqual(kills.accepted + kills.unsent);
  await expectWhole(world);
});

/**
 * Adds recipients. In each group of 25, one is closed to messages, one turns out to be closed only when a message is
 * sent, one is suppressed, and one has given no consent.
 */
async function addMixedPeople({
  sandbox,
  execute,
  file,
}: Installation): Promise<{ wanted: string[]; unwanted: string[] }> {
  const wanted: string[] = [];
  const unwanted: string[] = [];
  const rows = ["username,basis"];
  const suppressed: string[] = [];
  for (let number = 0; number < PEOPLE; number++) {
    const id = String(8_000_000_000 + number);
    const username = `mixed_${number}`;
    const kind = number % 25;
    sandbox.x.people.set(id, {
      id,
      username,
      name: "Mixed",
      receives_your_dm: kind !== 3,
      closed_when_sent: kind === 8,
    });
    if (kind === 13) suppressed.push(`@${username}`);
    rows.push(`${username},${kind === 18 ? "none" : "opt_in"}`);
    ([3, 8, 13, 18].includes(kind) ? unwanted : wanted).push(id);
  }
  expect(await execute("recipients", "import", file("people.csv", rows.join("\n")))).toMatchObject({ code: 0 });
  for (const handle of suppressed) expect(await execute("recipients", "suppress", handle)).toMatchObject({ code: 0 });
  return { wanted, unwanted };
}

/** Starts the service and waits until it has settled the messages in doubt and closed the dead run. */
async function settled(world: Installation): Promise<Running> {
  const service = await world.serve();
  await idle(service);
  return service;
}

/**
 * Kills the service while its message to this recipient is unanswered: X has accepted it (`accepted`) or not received
 * it (`unsent`). Returns `idle` if the day's quota was used up before.
 */
async function killAtRequest(
  { sandbox }: Installation,
  service: Running,
  person: string | undefined,
  moment: "accepted" | "unsent",
): Promise<"accepted" | "unsent" | "idle"> {
  const { x, faults } = sandbox;
  const kind = moment === "accepted" ? "timeout_after_delivery" : "timeout_before";
  faults.add({ network: "x", kind, path: `/with/${person}/messages`, count: 1 });
  const isThere = (): boolean => (moment === "accepted" ? x.accepted.has(String(person)) : faults.list().length === 0);
  await service.post("/social/run");
  await until(
    async () => isThere() || !((await (await service.get("/social/health")).json()) as { running: boolean }).running,
    (isOver) => isOver,
  );
  const isHit = isThere();
  await kill(service);
  faults.clear();
  return isHit ? moment : "idle";
}

/**
 * Kills the service `ms` after its run has started. A fault keeps the run from getting past this recipient; otherwise a
 * quick run would use up the day's quota.
 */
async function killInRun(
  { sandbox }: Installation,
  service: Running,
  person: string | undefined,
  ms: number,
): Promise<"run" | "idle"> {
  sandbox.faults.add({ network: "x", kind: "timeout_before", path: `/with/${person}/messages` });
  const { status } = await service.post("/social/run");
  await Bun.sleep(ms);
  await kill(service);
  sandbox.faults.clear();
  return status === 202 ? "run" : "idle";
}

async function killInStart(world: Installation, ms: number): Promise<void> {
  const starting = world.start(["serve"]);
  await Bun.sleep(ms);
  await kill({ process: starting });
}

/** Starts runs until the daily limit is reached or no recipient is left. */
async function finish(service: Running): Promise<void> {
  for (;;) {
    const answer = await service.post("/social/run", undefined, { prefer: "wait=300" });
    if (answer.status === 429) return;
    const run = (await answer.json()) as { reason?: string };
    if (run.reason === "completed") return;
    await idle(service);
  }
}
