import { expect, test } from "bun:test";
import { type EventStore, LeaseLost, type NewEvent, VersionConflict } from "eventstore-lite";
import fc from "fast-check";
import { newEvent, newEvents, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { engines } from "./engines.ts";
import { createModel, type Step } from "./model.ts";

const CASES = 1_000;
const STEPS_MAX = 25;

/**
 * Data of a large event. An append of several such events goes to the writer thread in pieces, if that thread is idle.
 */
const LARGE = "x".repeat(70_000);
const LARGE_ONE_IN = 20;

const name = fc.constantFrom("a", "b");
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append"),
      stream: name,
      expected: fc.oneof(fc.constantFrom("any", "none", "exists"), fc.nat({ max: 6 })),
      count: fc.integer({ min: 1, max: 3 }),
      isLarge: fc.nat({ max: LARGE_ONE_IN - 1 }).map((number) => number === 0),
      key: fc.option(fc.constantFrom("k1", "k2", "k3"), { nil: undefined, freq: 3 }),
      // Fencing token of an append: the test's lease may have had it earlier, has it now, or may get it later.
      // Undefined: the append is not fenced.
      token: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("acquire"), holder: name, steal: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release"), token: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.integer({ min: -700, max: 1_500 }) }) },
);
const plan = fc.array(fc.record({ step, waits: fc.boolean() }), { maxLength: STEPS_MAX });

const TTL_MS = 1_000;

test.each(engines())(
  "%s answers random interleavings of appends, keys, leases and fences like an in-memory model",
  async (_, open) => {
    let nowMs = 10_000_000;
    await using store = await open({ clock: () => nowMs });
    let cases = 0;
    await fc.assert(
      fc.asyncProperty(plan, async (steps) => {
        // All generated cases share one log, and each uses different names in it.
        const scope = `${(cases += 1)}`;
        const { position } = await store.head();
        const model = createModel(position, TTL_MS);
        const answers: Promise<unknown>[] = [];
        const expected: unknown[] = [];
        for (const { step, waits } of steps) {
          if (step.kind === "pass") {
            // Waits for all earlier appends before the clock moves, because the store reads the clock when it sends an
            // append.
            await Promise.all(answers);
            nowMs += step.ms;
            continue;
          }
          expected.push(model.answer(step, nowMs));
          answers.push(perform(store, scope, step));
          if (waits) await answers.at(-1);
        }
        expect(await Promise.all(answers)).toEqual(expected);
        expect((await store.head()).position).toBe(model.head());
      }),
      { numRuns: CASES },
    );
    const events = await take(store.read());
    expect(await store.verify()).toMatchObject({ ok: true, checked: events.length });
    expect(cases).toBeGreaterThanOrEqual(CASES);
    expect(events.length).toBeGreaterThan(CASES);
  },
);

/** Performs a generated step on the store, under names of this case, and returns the result in the model's form. */
async function perform(store: EventStore, scope: string, step: Exclude<Step, { kind: "pass" }>): Promise<unknown> {
  const lease = `${scope}-run`;
  if (step.kind === "acquire") {
    const { holder, steal } = step;
    return (await store.leases.acquire(lease, { holder, ttlMs: TTL_MS, steal }))?.token;
  }
  if (step.kind === "release") {
    await store.leases.release({ name: lease, holder: "", token: step.token, expiresAt: new Date(0) });
    return "released";
  }
  const { stream, expected, count, isLarge, key, token } = step;
  const options = {
    expected,
    ...(key !== undefined && { key: `${scope}-${key}` }),
    ...(token !== undefined && { fence: { lease, token } }),
  };
  return store.append(`${scope}-${stream}`, isLarge ? largeEvents(count) : newEvents(count), options).catch(refusalOf);
}

function largeEvents(count: number): NewEvent[] {
  return Array.from({ length: count }, () => newEvent("Large", LARGE));
}

function refusalOf(error: unknown): unknown {
  if (error instanceof VersionConflict) return { actual: error.actual };
  if (error instanceof LeaseLost) return "lease lost";
  throw error;
}
