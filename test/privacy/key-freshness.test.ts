// These tests call the code directly.
import { afterAll, beforeEach, expect, spyOn, test } from "bun:test";
import { FRESH_MS, trackFreshness } from "../../src/privacy/keyring.ts";

/** The mocked `performance.now()`, in ms. */
let now = 0;
const time = spyOn(performance, "now").mockImplementation(() => now);
afterAll(() => time.mockRestore());
beforeEach(() => (now = 1_000));

/**
 * Opens the freshness check of keys on a fake store. The store answers when the test says so, with the revision that it
 * had when it was asked.
 */
async function openFreshness() {
  const asked: (() => void)[] = [];
  const world = { revision: 1, refreshed: 0 };
  const revision = async (): Promise<number> => {
    const { revision: found } = world;
    const answered = Promise.withResolvers<void>();
    asked.push(answered.resolve);
    await answered.promise;
    return found;
  };
  const starting = trackFreshness({ revision }, () => void world.refreshed++);
  asked.shift()?.();
  const freshness = await starting;
  return { world, freshness, asked, answer: () => asked.shift()?.() };
}

/** True if the promise settles without any further event. */
async function isDone(promise: Promise<void> | undefined): Promise<boolean> {
  let done = false;
  void promise?.then(() => (done = true));
  await new Promise(setImmediate);
  return done;
}

test("freshness is counted from the request, not from the answer", async () => {
  const { freshness, answer, asked } = await openFreshness();
  const renewed = freshness.revalidate();
  now += FRESH_MS - 1;
  answer();
  await renewed;
  expect(freshness.revalidate()).toBeUndefined();
  // The second call has asked the store already, because the last answer is soon out of date. No caller waits for this
  // request yet.
  expect(asked).toHaveLength(1);
  now += 1;
  expect(await isDone(freshness.revalidate())).toBe(false);
});

test("a later caller waits for another answer if the pending one is too old", async () => {
  const { world, freshness, answer, asked } = await openFreshness();
  const early = freshness.revalidate();
  world.revision = 2;
  now += FRESH_MS;
  const late = freshness.revalidate();
  answer();
  expect([await isDone(early), world.refreshed]).toEqual([true, 0]);
  expect(await isDone(late)).toBe(false);
  expect(asked).toHaveLength(1);
  answer();
  expect([await isDone(late), world.refreshed]).toEqual([true, 1]);
});

test("after an invalidation the cache is fresh only after a later request", async () => {
  const { world, freshness, answer } = await openFreshness();
  const before = freshness.revalidate();
  answer();
  await before;
  expect(freshness.revalidate()).toBeUndefined();
  now += FRESH_MS * 0.75;
  // The check has asked the store again, but the last answer is not out of date yet, so the caller need not wait.
  expect(freshness.revalidate()).toBeUndefined();
  world.revision = 2;
  freshness.invalidate();
  const after = freshness.revalidate();
  answer();
  expect([await isDone(after), world.refreshed]).toEqual([false, 0]);
  answer();
  expect([await isDone(after), world.refreshed]).toEqual([true, 1]);
  expect(freshness.revalidate()).toBeUndefined();
});

test("a store that was slow or failed is asked again by the next caller", async () => {
  let calls = 0;
  const freshness = await trackFreshness(
    {
      async revision() {
        if (calls++ === 1) throw new Error("the connection was lost");
        now += 2 * FRESH_MS;
        return 1;
      },
    },
    () => {},
  );
  const refused = await freshness.revalidate()?.catch((fault: unknown) => fault);
  expect(String(refused)).toContain("the connection was lost");
  // This answer takes longer than FRESH_MS. It counts nevertheless, because the store was asked after the call.
  await freshness.revalidate();
  expect(calls).toBe(3);
});
