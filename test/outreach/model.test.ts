import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Fact } from "../../src/journal.ts";
import { SocialError } from "../../src/networks/network.ts";
import { parseTemplate } from "../../src/outreach/message.ts";
import type { Runner } from "../../src/outreach/runner.ts";
import { person, type Answer } from "./social-network.ts";
import { openWorld, type World } from "./world.ts";

/** Small, so that every population meets it. */
const DAILY_LIMIT = 4;
const RULES = { template: parseTemplate("Hi {{name}}"), requireConsent: true, dailyLimit: DAILY_LIMIT };
/** An hour's wait is longer than a run may take. */
const SETTINGS = { rules: RULES, runMaxMs: 600_000 };
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Somebody on the list, and what is wrong with them. */
const kinds = ["open", "closed", "protected", "unknown", "suppressed", "twice", "no_consent"] as const;
type Kind = (typeof kinds)[number];

const answers: fc.Arbitrary<Answer | undefined> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: fc.record({ doubt: fc.constantFrom("delivered", "lost"), lateMs: fc.nat(50_000) }) },
  { weight: 2, arbitrary: fc.record({ waitMs: fc.constantFrom(0, 5_000, 150_000, HOUR_MS) }) },
  { weight: 1, arbitrary: fc.constantFrom("recipient_closed", "rejected", "unreachable", "unauthorized", "stopped") },
);

const faults = fc.option(
  fc.constantFrom(
    new SocialError("unavailable", "told so"),
    new SocialError("stopped", "told so", { stop: "credits_depleted" }),
  ),
  { freq: 4, nil: undefined },
);

interface Day {
  readonly answers: readonly (Answer | undefined)[];
  readonly faults: readonly (SocialError | undefined)[];
  /** The process dies at that call of it; `after`: the call takes effect all the same. */
  readonly death: { readonly calls: number; readonly after: boolean } | undefined;
  /** Suppressed by hand while the service runs. */
  readonly suppressed: number | undefined;
  /** When the process starts; the last one runs into the next day. */
  readonly at: "08:00" | "23:58" | "23:59:58";
}

const day: fc.Arbitrary<Day> = fc.record({
  answers: fc.array(answers, { minLength: 2, maxLength: 8 }),
  faults: fc.array(faults, { maxLength: 4 }),
  death: fc.option(fc.record({ calls: fc.nat(30), after: fc.boolean() }), { nil: undefined }),
  suppressed: fc.option(fc.nat(11), { nil: undefined }),
  at: fc.constantFrom("08:00", "23:58", "23:59:58"),
});

const idOf = (index: number): string => String(100 + index);

async function populate(world: World, population: readonly Kind[]): Promise<void> {
  const rows: Fact[] = [];
  for (const [index, kind] of population.entries()) {
    const id = idOf(index);
    if (kind !== "unknown") {
      const more = { receivesOurDm: kind !== "closed" && kind !== "protected", protected: kind === "protected" };
      world.network.people.set(id, person(id, more));
    }
    const basis = kind === "no_consent" ? "none" : "opt_in";
    const row = (recipient: { id: string } | { username: string }): Fact => ({
      type: "RecipientAdded",
      data: { recipient, basis, fields: {}, source: "list" },
    });
    rows.push(row({ id }));
    if (kind === "twice") rows.push(row({ username: `USER_${id}` }));
    if (kind === "suppressed") rows.push(suppression(index));
  }
  await world.append(rows);
}

function suppression(index: number): Fact {
  return { type: "RecipientSuppressed", data: { recipient: { username: `user_${idOf(index)}` }, reason: "by_hand" } };
}

/** Triggers until a run has ended or the day's limit is reached. The lease of a dead process has to run out first. */
async function runOnce({ time }: World, runner: Runner): Promise<void> {
  for (;;) {
    const triggered = await runner.trigger({ dryRun: false, cause: { caller: "tests" } });
    if (triggered.kind === "started") await triggered.done;
    if (triggered.kind !== "running") return;
    await time.sleep(1_000, new AbortController().signal);
  }
}

/** One day of the service: a process starts, may die, is started again, and runs. */
async function live(world: World, { answers: told, faults: failing, death, suppressed, at }: Day): Promise<void> {
  const tomorrow = new Date(world.time.now() + DAY_MS).toISOString().slice(0, 10);
  world.time.jump(Date.parse(`${tomorrow}T${at}Z`) - world.time.now());
  world.network.answers.splice(0, Infinity, ...(told as Answer[]));
  world.network.faults.splice(0, Infinity, ...failing);
  const first = await world.start(SETTINGS);
  if (death !== undefined) first.dieAt(death.calls, death.after);
  await Promise.race([first.dead, first.runner.recover({ steal: true }).then(() => runOnce(world, first.runner))]);
  first.die();
  if (suppressed !== undefined) await world.append([suppression(suppressed)]);
  const second = await world.start(SETTINGS);
  await second.runner.recover({ steal: true });
  await runOnce(world, second.runner);
  await second.runner[Symbol.asyncDispose]();
  second.die();
}

async function check(world: World): Promise<void> {
  const { accepted } = world.network;
  const ids = accepted.map(({ recipientId }) => recipientId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const taken of Map.groupBy(accepted, ({ createdAt }) => Math.floor(createdAt / DAY_MS)).values()) {
    expect(taken.length).toBeLessThanOrEqual(DAILY_LIMIT);
  }
  await checkPlaces(world);
  await checkSuppressed(world);
}

/** At no position of the log are there more places taken of a day than it has. */
async function checkPlaces(world: World): Promise<void> {
  const places = new Map<string, number>();
  const dayOf = new Map<string, string>();
  const take = (attemptDay: string, by: number): void => {
    const taken = (places.get(attemptDay) ?? 0) + by;
    expect(taken).toBeLessThanOrEqual(DAILY_LIMIT);
    places.set(attemptDay, taken);
  };
  for (const { type, data } of await world.events("DirectMessageAttempted", "DirectMessageFailed")) {
    if (type === "DirectMessageAttempted") {
      dayOf.set(data.attempt_id, data.day);
      take(data.day, 1);
    } else if (data.frees_quota) take(dayOf.get(data.attempt_id) ?? "", -1);
  }
}

/** No intent comes after a suppression. */
async function checkSuppressed(world: World): Promise<void> {
  const suppressed = new Set<string | undefined>();
  for (const { type, data } of await world.events("RecipientSuppressed", "DirectMessageAttempted")) {
    if (type === "RecipientSuppressed") suppressed.add(data.recipient.username);
    else expect(suppressed).not.toContain(data.recipient.username);
  }
}

/** A day without any fault, on which everything that can be settled is. */
const fine: Day = { answers: [], faults: [], death: undefined, suppressed: undefined, at: "08:00" };

const seen = { accepted: 0, doubted: 0, undelivered: 0, died: 0, abandoned: 0, attempts: 0 };

async function count(world: World, days: readonly Day[]): Promise<void> {
  seen.accepted += world.network.accepted.length;
  seen.died += days.filter(({ death }) => death !== undefined).length;
  seen.attempts += (await world.events("DirectMessageAttempted")).length;
  seen.doubted += (await world.events("DirectMessageInDoubt")).length;
  seen.abandoned += (await world.events("RunAbandoned")).length;
  const failed = await world.events("DirectMessageFailed");
  seen.undelivered += failed.filter(({ data }) => data.reason === "not_delivered").length;
}

test("whatever the network answers and whenever the process dies: nobody gets two messages, no day gets one too many, and the stats are what the network took", async () => {
  const population = fc.array(fc.constantFrom(...kinds, "open" as const, "open" as const), {
    minLength: 4,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(population, fc.array(day, { minLength: 1, maxLength: 3 }), async (people, days) => {
      await using world = await openWorld();
      await populate(world, people);
      for (const given of days) {
        await live(world, given);
        await check(world);
      }
      await live(world, fine);
      await check(world);
      const { projector } = await world.start();
      expect(projector.state("run")).toMatchObject({ current: null, open: new Map() });
      expect(projector.state("stats").sent).toBe(world.network.accepted.length);
      await count(world, days);
    }),
    { numRuns: 100 },
  );
  // What the property met at all: without doubts and deaths it would prove little.
  expect(Math.min(seen.accepted, seen.doubted, seen.undelivered, seen.died, seen.abandoned)).toBeGreaterThan(20);
}, 120_000);
