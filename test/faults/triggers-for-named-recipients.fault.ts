import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { isWhole } from "../harness/case-count.ts";
import { authorize, BEARER, exported, kill, openInstallation, until, type Installation } from "../harness/process.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { expireLeases } from "./instances.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/**
 * Number of triggers, each for one recipient. Half of them come at the same time while no run is in progress, the other
 * half at the same time during a run.
 */
const TRIGGERS = isWhole ? 1_000 : 120;

/**
 * Daily limit of messages, lower than the number of recipients, so that most of them learn that the run did not reach
 * them.
 */
const LIMIT = isWhole ? 100 : 20;

/** Number of times that the service is killed during a run that requested recipients have joined. */
const KILLS = isWhole ? 25 : 6;

/**
 * Number of triggers, each for one recipient, for which the test measures the time from the trigger until X has
 * accepted the message.
 */
const MEASURED = isWhole ? 100 : 10;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

const PLACES = ["in a file", "on PostgreSQL"] as const;

interface Answered {
  readonly status: number;
  readonly name: string;
  /** URN of the problem, if the request was refused. */
  readonly type?: string;
  readonly run_id?: string;
  readonly joined?: boolean;
  readonly recipients?: readonly { readonly expected: string; readonly reason?: string }[];
}

async function open(place: (typeof PLACES)[number], people: number): Promise<Installation> {
  const world = await openInstallation({ x: { dmLimit: 10_000, dmReadLimit: 100_000 } });
  if (place === "on PostgreSQL")
    Object.assign(world.env, { DATABASE_URL: await newDatabase(), REACHLOG_KEY: "07".repeat(32) });
  await addPeople(world, people);
  return world;
}

/** Asks the instances in turn to write to one recipient each, and returns all answers. */
async function askAll(urls: readonly string[], names: readonly string[]): Promise<readonly Answered[]> {
  return Promise.all(
    names.map(async (name, nth): Promise<Answered> => {
      const body = JSON.stringify({ recipients: [name] });
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${urls[nth % urls.length]}/social/run`, { method: "POST", headers, body });
      return { ...((await answer.json()) as object), status: answer.status, name };
    }),
  );
}

/** Outcomes of requested recipients in the log, by `RUN HANDLE`; undefined for a request without one. */
async function outcomes(world: Installation): Promise<ReadonlyMap<string, string | undefined>> {
  const found = new Map<string, string | undefined>();
  for (const { type, data } of await exported(world)) {
    const { recipient, run_id, reason } = data as {
      recipient?: { username?: string };
      run_id?: string;
      reason?: string;
    };
    const key = `${run_id} ${recipient?.username}`;
    if (type === "RecipientRequested") found.set(key, undefined);
    else if (found.has(key) && ENDS.includes(type)) found.set(key, reason ?? type);
  }
  return found;
}

const ENDS: readonly string[] = [
  "DirectMessageSent",
  "DirectMessageSkipped",
  "DirectMessageFailed",
  "DirectMessageInDoubt",
  "RecipientNotReached",
];

test.each(PLACES)(`${TRIGGERS} triggers at once for named recipients lose none, in a log %s`, async (place) => {
  await using world = await open(place, TRIGGERS);
  const services = [await world.serve({ DAILY_LIMIT: String(LIMIT) })];
  if (place === "on PostgreSQL") services.push(await world.serve({ DAILY_LIMIT: String(LIMIT) }));
  const [service] = services;
  await authorize(service!, world.sandbox);
  for (const one of services) {
    await until(
      async () => (await one.post("/social/lookup", undefined, BEARER)).status,
      (status) => status === 202,
    );
  }
  const urls = services.map(({ url }) => url);
  const half = TRIGGERS / 2;
  // Without a run in progress, the triggers name few recipients, each several times. During a run for all, they name
  // more recipients than the limit allows.
  const few = LIMIT / 2;
  const names = Array.from({ length: half }, (_, nth) => `person_${1 + (nth % few)}`);
  const idleFirst = await askAll(urls, names);
  await idle(service!);
  world.sandbox.faults.add({ network: "x", kind: "429", retryAfter: 3, path: "/messages", count: 1 });
  expect((await service!.post("/social/run")).status).toBe(202);
  const others = Array.from({ length: half }, (_, nth) => `person_${1 + few + (nth % (half / 2))}`);
  const during = await askAll(urls, others);
  await idle(service!);

  const answers = [...idleFirst, ...during];
  const statuses = Map.groupBy(answers, ({ status, joined, type = "" }) =>
    joined === true ? "joined" : `${status} ${type.replace("urn:reachlog:problem:", "")}`.trim(),
  );
  const counts = Object.fromEntries([...statuses].map(([status, { length }]) => [status, length]));
  const ended = await outcomes(world);
  const reasons = Map.groupBy(ended.values(), (reason) => reason);
  const told = Object.fromEntries([...reasons].map(([reason, { length }]) => [String(reason), length]));
  console.log(
    `${TRIGGERS} triggers ${place}: ${JSON.stringify(counts)}, arrived ${arrivals(world).people}; outcomes ${JSON.stringify(told)}`,
  );
  expect(arrivals(world).people).toBe(LIMIT);
  expect(arrivals(world).mostToOne).toBe(1);
  expect([...ended.values()]).not.toContain(undefined);
  for (const { status, run_id, name, recipients } of answers) {
    // An answer other than 202 must be a refusal, which requests nothing.
    if (status !== 202) expect([409, 429, 503]).toContain(status);
    else expect([recipients?.length, ended.has(`${run_id} ${name}`)]).toEqual([1, true]);
  }
  expect(counts["joined"]).toBeGreaterThan(0);
  await expectWhole(world);
});

test.each(PLACES)("recipients who joined a run get an outcome after kill -9, in a log %s", async (place) => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
  const pick = createPick(SEED);
  const people = 10 + 3 * KILLS;
  await using world = await open(place, people);
  const counts = { answered: 0, unanswered: 0 };
  const answered: Answered[] = [];
  let service = await world.serve();
  await authorize(service, world.sandbox);
  for (let round = 0; round < KILLS; round++) {
    // In every other round X makes the run wait for long, so that recipients join it before the kill. In the other
    // rounds the run waits for a second and then goes on.
    const retryAfter = round % 2 === 0 ? 600 : 1;
    world.sandbox.faults.add({ network: "x", kind: "429", retryAfter, path: "/messages", count: 1 });
    expect((await service.post("/social/run")).status).toBe(202);
    const names = [1, 2, 3].map((nth) => `person_${people - 3 * round - nth + 1}`);
    const asking = names.map(async (name) => (await askAll([service.url], [name]))[0]!);
    const settled = Promise.allSettled(asking);
    // The kill comes after all answers, after the first one, or at a random moment. The list has functions, so that
    // only the chosen wait begins: an unused race would reject without a handler when the kill cuts all requests off.
    const waits = [() => settled, () => Promise.race(asking), () => Bun.sleep(pick(60))];
    await waits[round % waits.length]!();
    await Bun.sleep(pick(retryAfter === 1 ? 1_500 : 60));
    await kill(service);
    if (place === "on PostgreSQL") await expireLeases(world.env["DATABASE_URL"]!);
    world.sandbox.faults.clear();
    for (const one of await settled) {
      counts[one.status === "fulfilled" ? "answered" : "unanswered"]++;
      if (one.status === "fulfilled") answered.push(one.value);
    }
    service = await world.serve();
    await idle(service);
  }
  const ended = await outcomes(world);
  const abandoned = [...ended.values()].filter((reason) => reason === "abandoned").length;
  console.log(
    `kills of joined runs ${place} ${KILLS}: ${JSON.stringify(counts)}, requests in the log ${ended.size}, abandoned ${abandoned}`,
  );
  expect(abandoned).toBeGreaterThan(0);
  expect([...ended.values()]).not.toContain(undefined);
  for (const { status, run_id, name } of answered) {
    if (status === 202) expect(ended.has(`${run_id} ${name}`)).toBe(true);
  }
  expect(arrivals(world).mostToOne).toBeLessThanOrEqual(1);
  await expectWhole(world);
});

test("the time from a trigger for one recipient to X's acceptance is reported", async () => {
  await using world = await open("in a file", MEASURED);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  const times: number[] = [];
  for (let number = 1; number <= MEASURED; number++) {
    const began = performance.now();
    const [answer] = await askAll([service.url], [`person_${number}`]);
    expect(answer).toMatchObject({ status: 202, recipients: [{ expected: "message" }] });
    const id = String(7_000_000_000 + number);
    await until(
      async () => world.sandbox.x.accepted.has(id),
      (isThere) => isThere,
    );
    times.push(performance.now() - began);
    await idle(service);
  }
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  console.log(`from the trigger to X's 201, ${MEASURED} times: median ${at(0.5)} ms, p95 ${at(0.95)} ms`);
});
