import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { isWhole } from "../harness/case-count.ts";
import { authorize, BEARER, exported, until } from "../harness/process.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { arrivalsAt, rowOf } from "./delivery-network-table.ts";
import { expireLeases, healthOf, openInstances, untilReady, type Instances } from "./instances.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

const INSTANCES = 3;
const KILLS = Number(process.env["FAULT_KILLS"] ?? (isWhole ? 200 : 6));
const PEOPLE = 60;

/**
 * Maximum time in ms from the trigger of a run to the kill. The time is random, so the kill comes before the run's end,
 * after it, or while the run's report is sent.
 */
const KILL_MS_MAX = 250;

/** Maximum number of messages of a run, so low that most runs end before the kill. */
const LIMIT = 2;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

const SLACK = rowOf("slack");

test(`${INSTANCES} instances report each run once, after ${KILLS} times kill -9`, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
  const pick = createPick(SEED);
  const settings = { DATABASE_URL: await newDatabase(), REPORT: "run" };
  await using instances = await openInstances({ count: INSTANCES, rows: [SLACK], settings });
  const { world, places } = instances;
  const texts = listen(instances);
  await addPeople(world, PEOPLE);
  await authorize((await instances.at(0)).service, world.sandbox);
  const answers = new Map<number, number>();
  const victims = { runner: 0, dispatcher: 0, other: 0 };
  for (let kills = 0; kills < KILLS; kills++) {
    const runner = await instances.at(pick(INSTANCES));
    const { status } = await runner.service.post("/social/run", { limit: LIMIT }, BEARER);
    answers.set(status, (answers.get(status) ?? 0) + 1);
    const dispatcher = (await healthOf(runner.service)).roles["dispatcher-chat"];
    await Bun.sleep(pick(KILL_MS_MAX));
    const victim = pick(2) === 0 ? runner : instances.living()[pick(INSTANCES)]!;
    victims[victim === runner ? "runner" : victim.id === dispatcher ? "dispatcher" : "other"]++;
    await instances.end(victim.place, "SIGKILL");
    await expireLeases(settings.DATABASE_URL, victim.id);
    await instances.start(victim.place);
    await idle((await instances.at(victim.place)).service);
  }
  await untilReady(instances);
  const { service } = await instances.at(0);
  await until(
    () => healthOf(service),
    ({ channels }) => channels["chat"]!.pending === 0,
  );
  await Promise.all(places.map((place) => instances.end(place, "SIGTERM")));

  const reports = await reportsOf(instances);
  const outcomes = Object.groupBy(reports, ({ outcome }) => outcome);
  const wrong = reports.filter(({ run, requested, outcome }) => {
    const arrived = texts.filter((text) => text.includes(run)).length;
    return requested !== 1 || (outcome === "DispatchSucceeded" ? arrived !== 1 : arrived > 1);
  });
  const counts = Object.entries(outcomes).map(([outcome, all]) => `${outcome} ${all?.length}`);
  console.log(
    `reports of runs: ${KILLS} kills ${JSON.stringify(victims)}, answers ${JSON.stringify(Object.fromEntries(answers))}, ` +
      `runs ${reports.length}, cut off ${reports.filter(({ isCutOff }) => isCutOff).length}, ${counts.join(", ")}, ` +
      `arrived ${texts.length}, longest ${Math.max(...texts.map((text) => text.length))}, wrong ${wrong.length}`,
  );
  expect(wrong).toEqual([]);
  expect(reports.length).toBeGreaterThan(KILLS / 2);
  // Reports were either delivered or, if the kill came during the request itself, are in doubt: the service sends no
  // second request to a network that does not recognise repeats.
  expect(Object.keys(outcomes).filter((one) => !["DispatchSucceeded", "DispatchInDoubt"].includes(one))).toEqual([]);
  expect(outcomes["DispatchSucceeded"]!.length).toBeGreaterThan(0.8 * reports.length);
  for (const text of texts) expect([text.length <= 900, text.includes("person_")]).toEqual([true, false]);
  expect(arrivals(world).mostToOne).toBe(1);
  await expectWhole(world);
});

/** Collects the texts that arrive at Slack from now on. */
function listen({ world }: Instances): readonly string[] {
  const texts: string[] = [];
  const arrived = arrivalsAt(SLACK, world.sandbox);
  const add = arrived.add.bind(arrived);
  arrived.add = (message) => {
    texts.push((message as { readonly shown: string }).shown);
    add(message);
  };
  return texts;
}

/** Returns each ended run with the requests for its report, and how the dispatch of the last one ended. */
async function reportsOf({ world }: Instances) {
  const log = await exported(world);
  const requests = log.filter(({ type, data }) => type === "NotificationRequested" && data["report"] !== undefined);
  const ends = log.filter(({ type }) => type === "RunFinished" || type === "RunAbandoned");
  return ends.map(({ type, data }) => {
    const run = String(data["run_id"]);
    const own = requests.filter((one) => (one.data["report"] as { run_id?: string }).run_id === run);
    const at = own.at(-1)?.position;
    const outcome = log.find((event) => ENDINGS.includes(event.type) && isOf(event.data, at))?.type ?? "none";
    return { run, isCutOff: type === "RunAbandoned", requested: own.length, outcome };
  });
}

const ENDINGS = ["DispatchSucceeded", "DispatchInDoubt", "DispatchAbandoned", "DispatchSkipped"];

function isOf(data: Readonly<Record<string, unknown>>, position: number | undefined): boolean {
  const requests = data["requests"] as readonly { readonly sources: readonly (number | readonly number[])[] }[];
  const all = requests.flatMap(({ sources }) => sources);
  return all.some((one) => {
    const [first = 0, last = first] = typeof one === "number" ? [one] : one;
    return position !== undefined && first <= position && position <= last;
  });
}
