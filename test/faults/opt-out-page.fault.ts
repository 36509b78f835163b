import { expect, test } from "bun:test";
import { createPick } from "../outreach/model/step-scheduler.ts";
import {
  authorize,
  exported,
  kill,
  openInstallation,
  until,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { newDatabase } from "eventstore-lite/testing";
import { isWhole } from "../harness/case-count.ts";
import { idle } from "./expect-daily-limit-kept.ts";
import { expireLeases } from "./instances.ts";
import { addPeople, arrivals } from "./add-people-and-count-messages.ts";
import { expectWhole } from "./expect-whole-log.ts";

/** Number of recipients. X makes the run wait before the recipients in WAITING, who then opt out. */
const PEOPLE = isWhole ? 60 : 10;
const WAITING = Array.from({ length: isWhole ? 25 : 3 }, (_, at) => 2 + 2 * at);

/**
 * Rounds, each with a new log because a day has only a hundred messages. A whole run makes 200 kills on both engines
 * together.
 */
const ROUNDS = isWhole ? [1, 2, 3, 4] : [1];

/** Seconds until X accepts a message again after a 429. */
const WINDOW_S = 6;

/**
 * Latest time in ms at which the service is killed after the person pressed the button: mostly before or during the
 * answer.
 */
const KILL_MS_MAX = 25;

/**
 * Before every other kill, the test waits until the opt-out page has confirmed the opt-out. Latest time in ms after
 * that confirmation for such a kill; the run still waits for X then.
 */
const KILL_AFTER_ANSWER_MS_MAX = 400;

const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

test.each(["in a file", "on PostgreSQL"].flatMap((place) => ROUNDS.map((round) => [place, round] as const)))(
  "a recipient who opts out on their page gets no message, after kill -9 too, in a log %s, round %i",
  async (place, round) => {
    console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same moments)`);
    const pick = createPick(SEED + round);
    await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 10_000 } });
    Object.assign(world.env, { PUBLIC_URL: "http://localhost:0", MESSAGE_TEMPLATE: "Hi {{name}}: {{optout}}" });
    if (place === "on PostgreSQL")
      Object.assign(world.env, { DATABASE_URL: await newDatabase(), REACHLOG_KEY: "07".repeat(32) });
    await addPeople(world, PEOPLE);
    let service = await world.serve();
    await authorize(service, world.sandbox);
    const counts = { after_answer: 0, before_answer: 0, recorded: 0, during_run: 0 };
    for (const [nth, number] of WAITING.entries()) {
      const id = String(7_000_000_000 + number);
      world.sandbox.faults.add({
        network: "x",
        kind: "429",
        retryAfter: WINDOW_S,
        path: `/with/${id}/messages`,
        count: 1,
      });
      expect((await service.post("/social/run")).status).toBe(202);
      const code = await until(
        async () => codeOf(world, id),
        (found) => found !== undefined,
      );
      const waitsForAnswer = (nth + round) % 2 === 0;
      const pressing = press(service, code!);
      if (waitsForAnswer) expect(await pressing).toBe(true);
      await Bun.sleep(pick(waitsForAnswer ? KILL_AFTER_ANSWER_MS_MAX : KILL_MS_MAX));
      await kill(service);
      const isAnswered = await pressing;
      if (place === "on PostgreSQL") await expireLeases(world.env["DATABASE_URL"]!);
      counts[isAnswered ? "after_answer" : "before_answer"]++;
      if (await isRunUnfinished(world)) counts.during_run++;
      const isRecorded = (await suppressions(world)).includes(id);
      if (isRecorded) counts.recorded++;
      if (isAnswered) expect(isRecorded).toBe(true);
      service = await world.serve();
      // If the service died before it answered, the person presses the button again.
      if (!isAnswered) expect(await press(service, code!)).toBe(true);
      await idle(service);
    }
    expect((await service.post("/social/run")).status).toBe(202);
    await idle(service);
    const ids = WAITING.map((number) => String(7_000_000_000 + number));
    console.log(
      `kills around an opt-out ${place} ${WAITING.length}: ${JSON.stringify(counts)}, arrived ${arrivals(world).people} of ${PEOPLE}`,
    );
    expect(counts.after_answer).toBeGreaterThanOrEqual(Math.floor(WAITING.length / 2));
    expect(counts.during_run).toBe(WAITING.length);
    expect((await suppressions(world)).toSorted()).toEqual(ids.toSorted());
    for (const id of ids) expect(world.sandbox.x.accepted.has(id)).toBe(false);
    expect(arrivals(world)).toEqual({ people: PEOPLE - ids.length, mostToOne: 1 });
    await expectWhole(world);
  },
);

/** Presses the button of the recipient's opt-out page. True if the page confirms the opt-out. */
async function press(service: Running, code: string): Promise<boolean> {
  try {
    const body = new URLSearchParams({ do: "stop" });
    const answer = await fetch(`${service.url}/o/${code}`, { method: "POST", body, headers: { accept: "text/html" } });
    return answer.status === 200 && (await answer.text()).includes("We will not write to you again");
  } catch {
    return false;
  }
}

/**
 * Returns the code of the opt-out page in the newest message to a recipient; undefined if no intent is recorded yet.
 */
async function codeOf(world: Installation, id: string): Promise<string | undefined> {
  const messages = (await exported(world)).filter(({ type }) => type === "DirectMessageAttempted");
  const { data } = messages.findLast(({ data }) => (data["recipient"] as { id: string }).id === id) ?? {};
  return data?.["opt_out_code"] as string | undefined;
}

/** True if the newest run of the outreach agent has no end in the log. */
async function isRunUnfinished(world: Installation): Promise<boolean> {
  const types = (await exported(world)).map(({ type }) => type);
  const ends = ["RunFinished", "RunAbandoned"].map((type) => types.lastIndexOf(type));
  return types.lastIndexOf("RunStarted") > Math.max(...ends);
}

/** Returns the recipient's id of each event that records an opt-out on the opt-out page. */
async function suppressions(world: Installation): Promise<string[]> {
  const found = (await exported(world)).filter(({ data }) => data["reason"] === "opt_out_page");
  return found.map(({ data }) => (data["recipient"] as { id: string }).id);
}
