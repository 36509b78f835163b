import { expect, test } from "bun:test";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { createPick } from "../outreach/model/step-scheduler.ts";
import { authorize, exported, openInstallation, until, type Running, type Installation } from "../harness/process.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Seconds until X accepts a message again after a 429. They are longer than a command takes on a busy machine. */
const WINDOW_S = 8;

/** Daily limit of messages that the service has by default. */
const LIMIT = 100;

/**
 * Number of recipients. After each message, the next recipient is suppressed at a random moment, about when the run
 * reaches them.
 */
const PEOPLE = 190;

/** Maximum time in ms from a message to the suppression of the next recipient: about as long as one message takes. */
const MOMENT_MS_MAX = 10;

/** Maximum time in ms from a run's last check until X accepts the message, on any machine. */
const ON_THE_WAY_MS_MAX = 1_000;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

test("a recipient suppressed while the intent waits for X's window gets no message", async () => {
  const [people, waiting] = [6, [2, 4]];
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  await addPeople(world, people);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  for (const number of waiting) {
    const path = `/with/${idOf(world, number)}/messages`;
    world.sandbox.faults.add({ network: "x", kind: "429", retryAfter: WINDOW_S, path, count: 1 });
  }
  expect((await service.post("/social/run")).status).toBe(202);
  for (const number of waiting) {
    await untilWaiting(service, true);
    expect(await world.execute("recipients", "suppress", `@person_${number}`)).toMatchObject({ code: 0 });
    // The run must still be waiting for X; otherwise the suppression came too late to prove anything.
    await untilWaiting(service, true);
    await untilWaiting(service, false);
  }
  await idle(service);

  const failed = (await exported(world)).filter(({ type }) => type === "DirectMessageFailed");
  const reasons = failed.map(({ data }) => [data["reason"], data["frees_quota"]]);
  console.log(
    `suppressed while their intent waited: ${waiting.length}, arrived ${arrivals(world).people} of ${people}`,
  );
  expect(reasons).toEqual(waiting.map(() => ["suppressed", true]));
  for (const number of waiting) expect(world.sandbox.x.accepted.has(String(idOf(world, number)))).toBe(false);
  expect(arrivals(world)).toEqual({ people: people - waiting.length, mostToOne: 1 });
  await expectWhole(world);
});

test("a recipient suppressed by another process during a run gets no later intent", async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same people)`);
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  await addPeople(world, PEOPLE);
  const service = await world.serve();
  await authorize(service, world.sandbox);
  expect((await service.post("/social/run")).status).toBe(202);
  const suppressedAt = await suppressNext(world, service);

  const { messages } = world.sandbox.x;
  const late = messages.kept.flatMap(({ recipient_id, created_at }) => {
    const at = suppressedAt.get(recipient_id);
    return at !== undefined && created_at > at ? [created_at - at] : [];
  });
  const { intents, afterwards, withdrawn } = await ordersOf(world);
  const { people, mostToOne } = arrivals(world);
  console.log(
    `suppressed just before a run ${suppressedAt.size}: intents after it ${afterwards}, withdrawn at the last look ` +
      `${withdrawn}, on the way already ${late.length} (the latest ${Math.max(0, ...late).toFixed(0)} ms); arrived ${people} of ${PEOPLE}`,
  );
  expect(afterwards).toBe(0);
  expect(Math.max(0, ...late)).toBeLessThan(ON_THE_WAY_MS_MAX);
  expect({ people, mostToOne }).toEqual({ people: intents - withdrawn, mostToOne: 1 });
  expect(suppressedAt.size).toBeGreaterThan(PEOPLE / 10);
  expect(people).toBeGreaterThanOrEqual(Math.min(LIMIT, PEOPLE - suppressedAt.size));
  await expectWhole(world);
});

/**
 * Suppresses the next recipient after each message until the run ends. Returns the time of each suppression by the
 * recipient's id at X.
 */
async function suppressNext(world: Installation, service: Running): Promise<Map<string, number>> {
  const pick = createPick(SEED);
  const { x, clock } = world.sandbox;
  const suppressedAt = new Map<string, number>();
  await using store = await openLog(loadConfig(world.env, () => ""));
  const eventLog = createEventLog(store, makeId);
  const over = new AbortController();
  const ended = idle(service).finally(() => over.abort());
  for (let reached = 0; !over.signal.aborted; await Bun.sleep(0)) {
    if (x.accepted.size === reached) continue;
    reached = x.accepted.size;
    const number = numberOf(world, x.messages.kept.at(-1)?.recipient_id) + 1;
    const id = idOf(world, number);
    if (id === undefined) break;
    await Bun.sleep(pick(MOMENT_MS_MAX));
    const data = { recipient: { username: `person_${number}` }, reason: "by_hand" } as const;
    await eventLog.append(STREAMS.outreach, [{ type: "RecipientSuppressed", data }], { caller: "tests" });
    suppressedAt.set(id, clock.now());
  }
  await ended;
  return suppressedAt;
}

/**
 * Counts, by the log: all intents, the intents after their recipient's suppression, and the messages that were
 * withdrawn because of a suppression.
 */
async function ordersOf(world: Installation) {
  const suppressed = new Set<unknown>();
  let [intents, afterwards, withdrawn] = [0, 0, 0];
  for (const { type, data } of await exported(world)) {
    const { username } = (data["recipient"] ?? {}) as { username?: string };
    if (type === "RecipientSuppressed") suppressed.add(username);
    if (type === "DirectMessageAttempted") intents++;
    if (type === "DirectMessageAttempted" && suppressed.has(username)) afterwards++;
    if (type === "DirectMessageFailed" && data["reason"] === "suppressed") withdrawn++;
  }
  return { intents, afterwards, withdrawn };
}

async function untilWaiting(service: Running, wanted: boolean): Promise<void> {
  await until(
    async () => (await healthOf(service)).run?.waiting?.reason === "rate_limited",
    (isWaiting) => isWaiting === wanted,
  );
}

interface Health {
  readonly running: boolean;
  readonly run: { readonly waiting: { readonly reason: string } | null } | null;
}

async function healthOf(service: Running): Promise<Health> {
  return (await (await service.get("/social/health")).json()) as Health;
}

/** Returns X's id of the recipient that `addPeople` created with this number. */
function idOf({ sandbox }: Installation, number: number): string | undefined {
  return [...sandbox.x.people.values()].find(({ username }) => username === `person_${number}`)?.id;
}

/** Returns the number of the recipient that `addPeople` created with this id at X; 0 if the id is undefined. */
function numberOf({ sandbox }: Installation, id: string | undefined): number {
  return id === undefined ? 0 : Number(sandbox.x.people.get(id)?.username.slice("person_".length));
}
